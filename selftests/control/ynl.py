#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The netlink family, driven by a client that is not ours: the kernel's own
tools/net/ynl/cli.py, which knows nothing of it but its specification. What it
gets is what dblpctl shows, value by value; what it sets, dblpctl sees.

For selftests/vm/run --ynl.
"""

import contextlib
import errno
import io
import ipaddress
import json
import os
import struct
import subprocess
import sys
import time
import types

sys.path += [os.path.join(os.path.dirname(os.path.realpath(__file__)), '../lib'), '/usr/lib/ynl']

from guard import TOP, guard
guard('yaml', 'jsonschema', 'cli')
import yaml
import cli

SPEC = f'{TOP}/Documentation/netlink/specs/dblp.yaml'
INHERIT = 0xffffffff
# Operations of the specification that were used, and events that were received
used = set()
heard = set()

# Each command parses the specification: use the parser in C, which takes a twentieth
# of the time
yaml.safe_load = lambda stream: yaml.load(stream, yaml.CSafeLoader)


class Failed(Exception):
    """Something is not as it has to be."""


def same(got, wanted, what='it'):
    """Are they equal? Says where not."""
    if got == wanted and type(got) is type(wanted):
        return
    if isinstance(got, dict) and isinstance(wanted, dict):
        same(sorted(got), sorted(wanted), f'names in {what}')
        for name, value in got.items():
            same(value, wanted[name], f'{what}.{name}')
    if isinstance(got, list) and isinstance(wanted, list):
        same(len(got), len(wanted), f'the number of items in {what}')
        for number, value in enumerate(got):
            same(value, wanted[number], f'{what}[{number}]')
    raise Failed(f'{what} is {got!r}, not {wanted!r}')


class Refused(Exception):
    """The kernel has said no."""


def run_cli(*args):
    """What cli.py prints, JSON value by JSON value."""
    out = io.StringIO()
    refusals = []
    sys.argv = ['cli.py', '--spec', SPEC, '--output-json', *args]
    # ynl prints the exception and exits
    cli.print = lambda what: (refusals.append(what) if
                              isinstance(what, cli.NlError) else print(what))
    try:
        with contextlib.redirect_stdout(out):
            cli.main()
    except SystemExit as end:
        raise Refused(*refusals) from end
    finally:
        del cli.print
    for option, name in zip(args, args[1:]):
        if option in ('--do', '--dump'):
            used.add((option[2:], name))
    return [json.loads(line) for line in out.getvalue().splitlines()]


def do(name, /, **attrs):
    """Runs an operation, attributes with _ for -; the answer."""
    attrs = {key.replace('_', '-'): value for key, value in attrs.items()}
    return run_cli('--no-schema', '--do', name, '--json', json.dumps(attrs))[0]


def dump(name):
    """All objects of a kind."""
    return run_cli('--no-schema', '--dump', name)[0]


def refused(error, reason, attr, name, /, **attrs):
    """The operation must fail, with this said of this attribute."""
    try:
        do(name, **attrs)
    except Refused as error_seen:
        refusal = error_seen.args[0]
    else:
        raise Failed(f'{name} {attrs} was not refused')
    same(os.strerror(refusal.error), os.strerror(error), 'the error')
    said = refusal.nl_msg.extack
    if reason not in said.get('msg', ''):
        raise Failed(f'it says {said}, not {reason!r}')
    same(said.get('bad-attr') or said.get('miss-type'), attr, 'the attribute')


def ctl(*args):
    """What dblpctl -j says."""
    text = subprocess.run(['dblpctl', '-j', *args], check=True,
                          stdout=subprocess.PIPE).stdout
    return json.loads(text) if text else None


def address(text):
    """An address, however it is written."""
    addr = ipaddress.ip_address(text)
    return str(getattr(addr, 'ipv4_mapped', None) or addr)


# Names of dblpctl for enum dblp_auth_state
AUTH = {0: 'no', 1: 'yes', 3: 'both-keys', 7: 'old-key'}


# Settings that a socket may have set itself, by option
OWN = {1: 'budget', 2: 'budget_cap', 3: 'policy', 4: 'order', 6: 'fill', 19: 'phase'}

# Memory of a socket, in the order of SK_MEMINFO_*
MEMORY = ('rmem', 'rcvbuf', 'wmem', 'sndbuf', 'fwd_alloc', 'wmem_queued', 'optmem', 'backlog', 'drops')


def as_ctl(obj, **rest):
    """An object of cli.py's as dblpctl has it: same names, same values."""
    out = {key.replace('-', '_'): address(value) if key.endswith('-addr')
           else AUTH[value] if key == 'auth'
           else str(value) if key in ('norm', 'previous', 'tag')
           else ','.join(n for bit, n in OWN.items() if value >> bit & 1) if key == 'own'
           else value for key, value in obj.items()}
    if 'gso' in out:
        out['gso'] = ('off', 'on')[out['gso']]
    memory = bytes.fromhex(out.pop('meminfo', ''))
    return {**rest, **out, **dict(zip(MEMORY, struct.unpack(f'={len(memory) // 4}I', memory)))}


def as_ctl_capped(obj, **rest):
    """The same, of what may have no cap."""
    return as_ctl(obj, budget_cap='inherit', **rest)


def shown(sock):
    """A socket as dblpctl has it, without what it concludes or takes from the job."""
    return {k: v for k, v in sock.items() if not k.endswith('s_all') and k != 'job_name'}


class Peers:
    """Processes with sockets, which end with the test."""

    def __init__(self):
        self.running = []

    def start(self, *words):
        """dblp-peer, until it says "ready"."""
        peer = subprocess.Popen(['dblp-peer', *words], stdout=subprocess.PIPE)
        self.running.append(peer)
        same(peer.stdout.readline(), b'ready\n', 'what dblp-peer says')
        return peer

    def connection(self, address_text, port, *words):
        """Two sockets that have exchanged messages, and are idle."""
        self.start('set', 'cap', '1000000', 'listen', address_text, port,
                   'say', 'ready', 'accept',
                   'recv', '3', 'send', '2', '5000', 'say', 'done', 'pause')
        self.start('socket', *words, 'connect', address_text, port, 'send',
                   '3', '70000', 'recv', '2', 'say', 'ready', 'pause')
        idle = None
        while idle != (idle := ctl('stats')):
            time.sleep(0.1)

    def end(self):
        """All of them."""
        for peer in self.running:
            peer.kill()
            peer.wait()
        self.running = []
        # Closed sockets leave their job a little later
        while ctl('socket', 'list') or any(j['sockets']
                                           for j in ctl('job', 'list')):
            time.sleep(0.05)


peers = Peers()


def as_users_call_it():
    """A process of its own, with the schema that the specification keeps."""
    text = subprocess.run([sys.executable, '/usr/lib/ynl/cli.py', '--spec',
                           SPEC, '--dump', 'cc-get', '--output-json'],
                          check=True, stdout=subprocess.PIPE).stdout
    used.add(('dump', 'cc-get'))
    same([{**c, 'default': bool(c['default'])} for c in json.loads(text)],
         ctl('cc', 'list'))


def sockets():
    """Dump and get, of connections by IPv4 and IPv6 and of a listener."""
    peers.connection('127.0.0.1', '7001')
    peers.connection('::1', '7002', 'set', 'budget', '20000')
    peers.start('listen', '::1', '7003', 'say', 'ready', 'pause')
    wanted = [shown(s) for s in ctl('socket', 'list')]
    same(len(wanted), 5, 'the number of sockets')
    same([as_ctl(s) for s in dump('socket-get')], wanted)
    for sock in wanted:
        same(as_ctl(do('socket-get', id=sock['id'])), sock)
    same(sum(s['msgs_sent'] for s in wanted), 10, 'messages sent')


def socket_settings():
    """What one client sets, the other sees."""
    do('job-add', id=7, phase=1)
    peers.start('listen', '::1', '7000', 'say', 'ready', 'pause')
    number = ctl('socket', 'list')[0]['id']
    same(do('socket-set', id=number, budget=123, budget_cap=456, job=7), None)
    seen = ctl('socket', 'show', str(number))
    same([seen[k] for k in ('budget', 'budget_cap', 'job', 'phase')],
         [123, 456, 7, 1])
    do('socket-set', id=number, budget=INHERIT, phase=2, job=0)
    seen = ctl('socket', 'show', str(number))
    same([seen[k] for k in ('budget', 'budget_cap', 'job', 'phase')],
         [408000, 456, 0, 2])
    ctl('socket', 'set', str(number), 'loss', '3%', 'phase', 'critical')
    same(as_ctl(do('socket-get', id=number)),
         shown(ctl('socket', 'show', str(number))))


def counters():
    """All, and those that are not zero."""
    peers.connection('::1', '7001')
    peers.end()

    def camel(stats):
        return {''.join(map(str.capitalize, name.split('-'))): n
                for name, n in stats.items()}
    same(camel(do('stats-get')), ctl('stats', 'all'))
    some = ctl('stats', 'nonzero')
    same(camel(do('stats-get', nonzero=True)), some)
    same(some['MsgSent'] >= 5, True)


def phases():
    """The table, and its changes."""
    same([as_ctl_capped(p) for p in dump('phase-get')], ctl('phase', 'list'))
    do('phase-set', id=5, name='mine', budget=777, policy='early',
       order='shuffled', fill='keep', budget_cap=9000)
    same(ctl('phase', 'show', 'mine'),
         {'id': 5, 'name': 'mine', 'budget': 777, 'policy': 'early',
          'order': 'shuffled', 'fill': 'keep', 'sockets': 0,
          'budget_cap': 9000})
    same(as_ctl_capped(do('phase-get', id=5)), ctl('phase', 'show', '5'))
    ctl('phase', 'set', '5', 'loss', '2%', 'fill', 'zero')
    same([as_ctl_capped(p) for p in dump('phase-get')], ctl('phase', 'list'))
    do('phase-del', id=5)
    same([p['id'] for p in ctl('phase', 'list')], [0, 1, 2])


def as_ctl_job(job):
    """A job: its statistics are shown apart, and are seen as time goes by."""
    rest = {key: value for key, value in job.items() if key != 'stats'}
    names = {phase['id']: phase['name'] for phase in dump('phase-get')}
    return as_ctl_capped(rest, low='inherit', high='inherit',
                         phase_name=names[job['phase']])


def jobs():
    """Settings, detector and statistics."""
    do('job-add', id=7, name='resnet', clr='on', low=9000, eta=250000, hold=3)
    do('job-add', id=0x7fffffff, phase=2)
    peers.connection('::1', '7001', 'set', 'job', '7', 'norm', '4294967296',
                     'norm', '4294967297')
    same([as_ctl_job(j) for j in dump('job-get')], ctl('job', 'list'))
    job = do('job-get', id=7)
    same(as_ctl_job(job), ctl('job', 'show', 'resnet'))
    same([job[k] for k in ('regime', 'norm', 'reports', 'sockets', 'phase')],
         ['critical', 4294967297, 2, 1, 1])
    do('job-set', id=7, phase=2, high=5)
    do('job-replace', id=7, name='vgg')
    job = do('job-get', id=7)
    same(as_ctl_job(job), ctl('job', 'show', 'vgg'))
    same(job['clr'], 'held')
    # Ignore the time, which differs between the two requests
    stats = [{**s, 'time-ms': 0} for s in do('job-get', id=7)['stats']]
    same([as_ctl(s, share=s['forgiven'] * 1000000 // max(s['bytes'], 1)) for s in stats],
         [{**s, 'time_ms': 0} for s in ctl('job', 'stats', '7')])
    same(sum(s['messages'] for s in stats), 3, 'messages of the job')
    peers.end()
    do('job-del', id=7)
    same([j['id'] for j in ctl('job', 'list')], [0x7fffffff])


def params():
    """What new sockets begin with."""
    same(as_ctl_capped(do('param-get')), ctl('param', 'list'))
    do('param-set', congestion='lossy', budget_cap=5, user_timeout_ms=90000,
       keepalive_ms=77, gso=0)
    same(ctl('param', 'list'),
         {'congestion': 'lossy', 'budget_cap': 5, 'user_timeout_ms': 90000,
          'keepalive_ms': 77, 'gso': 'off'})
    same(do('param-get', initial=True)['congestion'], 'sqrt')
    same(do('cc-get', name='lossy'), {'name': 'lossy', 'default': 1})
    ctl('param', 'set', 'congestion', 'sqrt', 'cap', 'inherit', 'timeout', '30s',
        'keepalive', '15s', 'gso', 'on')
    same(do('param-get'), do('param-get', initial=True))


def listen_while(provoke):
    """Events while something happens: cli.py sleeps meanwhile."""
    cli.time = types.SimpleNamespace(sleep=lambda _: provoke())
    try:
        return run_cli('--no-schema', '--subscribe', 'events', '--sleep',
                       '1')[0]
    finally:
        cli.time = time


def as_ctl_event(event):
    """An event, as dblpctl monitor prints it."""
    heard.add(event['name'])
    out = as_ctl(event['msg'], event=event['name'].removesuffix('-ntf'))
    if 'error' in out:
        out['error'] = errno.errorcode.get(out['error'], 'none')
    return out


def events():
    """Both clients hear the same. That of 6.12 takes events only while it asks
    for nothing: it stumbles over one that comes before its answer."""
    monitor = subprocess.Popen(['dblpctl', '-j', 'monitor'],
                               stdout=subprocess.PIPE)
    # The monitor has subscribed when it reports this event, which is repeated
    os.set_blocking(monitor.stdout.fileno(), False)
    while not monitor.stdout.read():
        ctl('phase', 'set', '7', 'name', 'tuning')
        time.sleep(0.05)
    os.set_blocking(monitor.stdout.fileno(), True)

    theirs = []

    def hear_until(name):
        ctl('phase', 'set', '6', 'name', name)
        event = {}
        while event.get('name') != name:
            event = json.loads(monitor.stdout.readline())
            if event.get('name') != 'tuning':
                theirs.append(event)

    def provoke():
        hear_until('first')
        ctl('phase', 'del', '6')
        ctl('job', 'add', '7', 'clr', 'on', 'name', 'resnet')
        # A receiver that closes late gets the whole message, so repeat
        while 'msg-closed' not in [event['event'] for event in theirs]:
            peers.connection('::1', '7001', 'set', 'job', '7', 'norm',
                             '4294967296', 'norm', '4294967297', 'set',
                             'budget', '500000')
            peers.end()
            hear_until('more')
        ctl('job', 'del', '7')
        hear_until('last')
    try:
        mine = [as_ctl_event(e) for e in listen_while(provoke)]
        same(len(mine), len(theirs), 'the number of events')
        for number, (one, other) in enumerate(zip(mine, theirs)):
            same(one, other, f'event {number}')
    finally:
        monitor.kill()
        monitor.wait()


def refusals():
    """They name attribute and reason."""
    refused(errno.ENOENT, 'there is no such phase', '.phase', 'job-add', id=1,
            phase=6)
    refused(errno.EINVAL, 'at most 1000000 ppm', '.budget', 'phase-set',
            id=2, budget=1000001)
    refused(errno.ERANGE, 'out of range', '.eta', 'job-add', id=1, eta=0)
    refused(errno.EINVAL, 'is needed', 'id', 'job-del')
    same(ctl('job', 'list'), [])


def all_of_it():
    """Nothing of the specification was left out."""
    with open(SPEC, encoding='utf-8') as file:
        operations = yaml.safe_load(file)['operations']['list']
    same(used, {(mode, op['name']) for op in operations
                for mode in ('do', 'dump') if mode in op})
    same(heard, {op['name'] for op in operations if 'event' in op})


TESTS = (as_users_call_it, params, phases, sockets, socket_settings, counters,
         jobs, events, refusals, all_of_it)


def main():
    """Each in turn, in a network namespace of their own."""
    if os.environ.get('YNL_NETNS') is None:
        os.environ['YNL_NETNS'] = '1'
        os.execvp('unshare', ['unshare', '-n', sys.executable, *sys.argv])
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    begun = subprocess.run(['dblpctl', 'save'], check=True,
                           stdout=subprocess.PIPE).stdout
    print('TAP version 13')
    bad = 0
    for number, test in enumerate(TESTS, 1):
        begin = time.monotonic()
        verdict = 'ok'
        try:
            test()
        except Exception as error:
            verdict = 'not ok'
            bad += 1
            for line in f'{type(error).__name__}: {error}'.splitlines():
                print(f'# {line}')
        finally:
            peers.end()
            subprocess.run(['dblpctl', '-b', '-'], input=begun, check=True)
        print(f'# {(time.monotonic() - begin) * 1000:.0f} ms')
        print(f'{verdict} {number} {test.__name__.replace("_", " ")}',
              flush=True)
    print(f'1..{len(TESTS)}')
    return bad > 0


if __name__ == '__main__':
    sys.exit(main())
