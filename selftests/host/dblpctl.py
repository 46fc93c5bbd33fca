#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of dblpctl without the module: this program is the kernel end of its netlink
socket, replies with the objects in dblpctl.recorded, and records requested changes.

  dblpctl.py            run the tests: those of dblpctl.session, then those written here
  dblpctl.py --update   write the present output of dblpctl to dblpctl.session, for review
  dblpctl.py --record   print the sockets, jobs and events of the loaded module. With this program
                        and uapi/linux in the folder add:
                        selftests/vm/run --um --ynl --add add -- /add/dblpctl.py --record

A line of dblpctl.session is one of

  # NAME                a point, to which the lines below belong
  $ WORDS               dblpctl WORDS, which ends with status 0; $2: with status 2
  % WORDS<TAB>          the completions after WORDS are on the next line
  < TEXT                a line of standard input of the command above
  > REQUEST             a change that the command above requested
  @ KEY VALUE           changes the kernel from here on, see Kernel.order()

and all other lines are the output of the command, with a \ before # at the beginning.
"""

import errno
import ipaddress
import json
import os
import re
import select
import shlex
import socket
import struct
import subprocess
import sys
import time

here = os.path.dirname(os.path.realpath(__file__))
top = os.path.dirname(os.path.dirname(here))
DBLPCTL = os.path.join(top, 'tools/dblpctl/dblpctl')
NETNS = 'dblp-recorded'
FAMILY = 0x20
GENL_CTRL = 0x10
NLM_F_MULTI, NLM_F_DUMP_INTR, NLM_F_DUMP = 2, 0x10, 0x300
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200


def numbers():
    """Names of the attributes of each set, and of the commands, in the order of the header."""
    for folder in ('uapi', 'add'):
        path = os.path.join(top, folder, 'linux/dblp_netlink.h')
        if os.path.exists(path):
            break
    with open(path, encoding='utf-8') as file:
        blocks = re.findall(r'^enum \{(.*?)__DBLP_(\w+)_MAX', file.read(), re.S | re.M)
    return {name: re.findall(rf'\bDBLP_{name}_(\w+)', text) for text, name in blocks}


NAMES = numbers()
COMMANDS = NAMES['CMD']


def set_of(command):
    """Name of the attribute set of a command."""
    return 'A_EVENT' if command.endswith('_NTF') else f"A_{command.rsplit('_', 1)[0]}"


# An object is a list of attributes, (name, text): 7, 7q of 64 bits, 7p a port, an
# address, 'a string', yes for a flag, numbers (1,2), or a nested object in brackets

def unpack(kind, data):
    """Parse attributes into pairs."""
    found = []
    while data:
        size, number = struct.unpack_from('=HH', data)
        name, value = NAMES[kind][(number & 0x3fff) - 1], data[4:size]
        data = data[size + 3 & ~3:]
        if name == 'PAD':
            continue
        if name == 'STATS':
            text = f"[{','.join('='.join(p) for p in unpack('A_JOB_PHASE', value))}]"
        elif name in ('NAME', 'CONGESTION'):
            text = f"'{value.rstrip(bytes(1)).decode()}'"
        elif name.endswith('_ADDR'):
            text = str(ipaddress.IPv6Address(value))
        elif name == 'MEMINFO':
            text = f"({','.join(map(str, struct.unpack(f'={len(value) // 4}I', value)))})"
        elif len(value) == 2:
            text = f'{int.from_bytes(value, "big")}p'
        else:
            text = str(int.from_bytes(value, sys.byteorder)) if value else 'yes'
            text += 'q' if len(value) == 8 else ''
        found.append((name, text))
    return found


def pack(kind, pairs):
    """The reverse of unpack()."""
    data = b''
    for name, text in pairs:
        if text[0] == '[':
            value = pack('A_JOB_PHASE', [p.split('=') for p in text[1:-1].split(',')])
        elif text[0] == '(':
            value = struct.pack(f'={text.count(",") + 1}I', *map(int, text[1:-1].split(',')))
        elif text[0] == "'":
            value = text[1:-1].encode() + bytes(1)
        elif ':' in text:
            value = ipaddress.IPv6Address(text).packed
        elif text[-1] == 'p':
            value = int(text[:-1]).to_bytes(2, 'big')
        elif text == 'yes':
            value = b''
        else:
            value = int(text.rstrip('q')).to_bytes(8 if text[-1] == 'q' else 4, sys.byteorder)
        data += attribute(NAMES[kind].index(name) + 1, value)
    return data


def attribute(number, value):
    """Encode a netlink attribute."""
    return struct.pack('=HH', len(value) + 4, number) + value + bytes(-len(value) % 4)


def message(kind, flags, seq, data):
    """Encode a netlink message."""
    return struct.pack('=IHHII', len(data) + 16, kind, flags, seq, 0) + data


def generic(command, data, kind=FAMILY, flags=0, seq=0):
    """Encode a generic netlink message."""
    return message(kind, flags, seq, struct.pack('=BBH', command, 1, 0) + data)


def as_text(command, pairs):
    """Format a request, an object or an event as a line."""
    return ' '.join([command, *('='.join(p) for p in pairs)])


def from_text(line):
    """Parse a line of as_text() into command and pairs."""
    command, *words = line.split()
    return command, [tuple(w.split('=', 1)) for w in words]


def recorded():
    """Recorded objects by scene and command, and recorded events."""
    scenes, objects = {}, None
    with open(os.path.join(here, 'dblpctl.recorded'), encoding='utf-8') as file:
        for line in file:
            if line.startswith('@'):
                objects = scenes[line[1:].strip()] = {}
            elif line[0] != '#':
                command, pairs = from_text(line)
                objects.setdefault(command, []).append(pairs)
    return scenes


class Kernel:
    """The fake kernel."""

    def __init__(self, scenes):
        self.scenes = scenes
        self.objects = dict(scenes['busy'])
        self.changes = []
        self.orders = {}
        # Called for each request that is not about the family
        self.each = lambda command: None

    def order(self, words):
        """refuse COMMAND ERRNO ATTRIBUTE TEXT: refuse this command, or all changes if it is *
        torn N: interrupt each of the next N dumps by a change
        events: send the recorded events, then remove the module
        absent: the module is not loaded
        scene NAME: use another recorded scene
        add OBJECT: add an object"""
        key, *rest = words.split(None, 1)
        if key == 'scene':
            self.objects = dict(self.scenes[rest[0]])
        elif key == 'add':
            command, pairs = from_text(rest[0])
            self.objects[command] = self.objects.get(command, []) + [pairs]
        else:
            self.orders[key] = rest[0] if rest else ''

    def refuse(self, request, err, name='', text=''):
        """The reply to a request that fails with err; 0: that succeeds."""
        data = struct.pack('=i', -err) + request[:16]
        flags = NLM_F_CAPPED
        if text:
            flags |= NLM_F_ACK_TLVS
            data += attribute(1, text.encode() + bytes(1))
        at = 20
        while name and at < len(request):
            size, number = struct.unpack_from('=HH', request, at)
            if NAMES[set_of(COMMANDS[request[16] - 1])][number - 1] == name:
                flags |= NLM_F_ACK_TLVS
                data += attribute(2, struct.pack('=I', at))
            at += size + 3 & ~3
        seq, = struct.unpack_from('=I', request, 8)
        return message(2, flags, seq, data)

    def family(self, request):
        """The reply to a request for the family, and events if ordered."""
        seq, = struct.unpack_from('=I', request, 8)
        group = attribute(1, attribute(1, b'events\0') + attribute(2, struct.pack('=I', 5)))
        number = attribute(1, struct.pack('=H', FAMILY))
        if 'absent' in self.orders:
            return [self.refuse(request, errno.ENOENT)]
        answer = [generic(1, number + attribute(7, group), GENL_CTRL, 0, seq),
                  self.refuse(request, 0)]
        if 'events' in self.orders:
            # Another family is added and removed before this one is removed
            other = attribute(1, struct.pack('=H', FAMILY + 1))
            answer += [generic(1, other, GENL_CTRL), generic(2, other, GENL_CTRL)]
            for command, objects in self.scenes['events'].items():
                answer += [generic(COMMANDS.index(command) + 1, pack('A_EVENT', pairs))
                           for pairs in objects]
            answer += [b'\0', generic(2, number, GENL_CTRL)]
        return answer

    def dump(self, command, seq):
        """All objects of a command."""
        left = int(self.orders.get('torn', 0))
        self.orders['torn'] = max(left - 1, 0)
        flags = NLM_F_MULTI | (NLM_F_DUMP_INTR if left else 0)
        return [*(generic(COMMANDS.index(command) + 1, pack(set_of(command), pairs), flags=flags,
                          seq=seq) for pairs in self.objects.get(command, [])),
                message(3, flags, seq, bytes(4))]

    def answer(self, request):
        """The messages of the reply to a request."""
        _, kind, flags, seq = struct.unpack_from('=IHHI', request)
        if kind == GENL_CTRL:
            return self.family(request)
        command = COMMANDS[request[16] - 1]
        self.each(command)
        asked = unpack(set_of(command), request[20:])
        which, _, rest = self.orders.get('refuse', '-').partition(' ')
        if which == command or which == '*' and not command.endswith('_GET'):
            err, name, text = (rest + '  ').split(' ', 2)
            return [self.refuse(request, getattr(errno, err), name, text.strip())]
        if flags & NLM_F_DUMP:
            return self.dump(command, seq)
        if command.endswith('_GET'):
            found = [o for o in self.objects.get(command, []) if not asked or
                     asked[0][0] == 'NONZERO' or asked[0] in o]
            if not found:
                return [self.refuse(request, errno.ENOENT)]
            pairs = found[0]
            if asked and asked[0][0] == 'NONZERO':
                pairs = [p for p in pairs if p[1] != '0q']
            return [generic(request[16], pack(set_of(command), pairs), seq=seq),
                    self.refuse(request, 0)]
        if not asked:
            return [self.refuse(request, errno.EINVAL)]
        self.changes.append(as_text(command, asked))
        return [self.refuse(request, 0)]

    def serve(self, sock):
        """Reply to requests until the other end closes."""
        try:
            while request := sock.recv(1 << 16):
                for reply in self.answer(request):
                    sock.send(reply)
        except OSError:
            pass


class Failed(Exception):
    """A check failed."""


def same(got, wanted, what='it'):
    """Fail unless both are equal."""
    if got != wanted:
        raise Failed(f'{what} is {got!r}, not {wanted!r}')


class Bench:
    """dblpctl and its fake kernel."""

    def __init__(self, folder):
        self.folder = folder
        self.scenes = recorded()
        self.kernel = Kernel(self.scenes)
        self.status = 0
        version = subprocess.run([DBLPCTL, '-V'], check=True, stdout=subprocess.PIPE, text=True)
        self.version = version.stdout.split()[1]

    def reset(self, scene='busy'):
        """Restore the recorded state of the kernel."""
        self.kernel = Kernel(self.scenes)
        self.kernel.order(f'scene {scene}')
        return self.kernel

    def start(self, command, **options):
        """Start a process with the fake kernel."""
        import threading
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        preload = os.path.join(top, 'selftests/build/dblpctl-preload.so')
        env = {**os.environ, 'LC_ALL': 'C', 'LD_PRELOAD': preload, 'DBLPCTL': DBLPCTL,
               'NETLINK_FD': str(theirs.fileno()), **options.pop('env', {})}
        with theirs:
            process = subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()],
                                       cwd=self.folder, **options)
        threading.Thread(target=self.kernel.serve, args=[ours], daemon=True).start()
        return process

    def run(self, *words, stdin='', order='', **options):
        """Output and errors of dblpctl; the order is valid for this call only."""
        if order:
            self.kernel.order(order)
        command = options.pop('command', [DBLPCTL])
        process = self.start([*command, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=options.pop('stderr', subprocess.STDOUT), **options)
        try:
            out, err = process.communicate(stdin.encode(errors='surrogateescape'), 60)
        finally:
            process.kill()
        self.status = process.returncode
        if order:
            self.kernel.orders.clear()
        return ((err or b'') + out).decode('utf-8', 'surrogateescape')

    def json(self, *words):
        """The JSON values that dblpctl -j prints."""
        text = self.run('-j', *words)
        same(self.status, 0, text)
        values, decoder = [], json.JSONDecoder()
        while text := text.lstrip():
            value, end = decoder.raw_decode(text)
            values.append(value)
            text = text[end:]
        return values

    def complete(self, line, **options):
        """The completions of a line."""
        script = r'''. "${DBLPCTL%/*}/dblpctl.bash-completion"
            dblpctl() { "$DBLPCTL" "$@"; }
            read -ra COMP_WORDS <<< "$1"; [ "${1: -1}" != ' ' ] || COMP_WORDS+=('')
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _dblpctl; echo "${COMPREPLY[*]}"'''
        return self.run(line, command=['bash', '-c', script, 'bash'], **options)

    def without_chance(self, text):
        """Replace time and version, which differ in each run, by words."""
        text = re.sub(r'20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d\.\d{6}[+-]\d{4}', 'TIME', text)
        return text.replace(self.version, 'VERSION')


# dblpctl.session

def session_parts():
    """Name and lines of each point."""
    with open(os.path.join(here, 'dblpctl.session'), encoding='utf-8') as file:
        points = re.split(r'^# ', file.read(), flags=re.M)[1:]
    for point in points:
        name, *lines = point.rstrip('\n').split('\n')
        yield name, lines


def session_part(bench, lines):
    """The lines of a point with the present output."""
    now, at = [], 0
    bench.reset()
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith('@'):
            now.append(line)
            bench.kernel.order(line[2:])
        if not line.startswith(('$', '%')):
            continue
        stdin = ''
        while at < len(lines) and lines[at].startswith('<'):
            stdin += lines[at][2:] + '\n'
            at += 1
        bench.kernel.changes.clear()
        words = line.partition(' ')[2]
        typed = shlex.split(words.replace(r'\e', '\x1b'))
        if line[0] == '%':
            out = bench.complete(f"dblpctl {words.removesuffix('<TAB>')}")
        else:
            out = bench.run(*typed, stdin=stdin)
        prompt = line[0] + (str(bench.status) if bench.status else '')
        now += [f'{prompt} {words}', *(f'< {text}'.rstrip() for text in stdin.splitlines()),
                *(re.sub(r'^(?=\\*# )', r'\\', text) for text in bench.without_chance(out).splitlines()),
                *(f'> {change}' for change in bench.kernel.changes)]
        while at < len(lines) and not lines[at].startswith(('$', '%', '@')):
            at += 1
    return now


def check_session(bench, lines):
    """Fail if the output differs from the session."""
    import difflib
    wanted = [line for line in lines if line]
    now = [line for line in session_part(bench, lines) if line]
    if wanted != now:
        raise Failed('\n'.join(difflib.unified_diff(wanted, now, 'written', 'now', n=2, lineterm='')))


def update(bench):
    """Write the session with the present output."""
    parts = [[f'# {name}', *session_part(bench, lines)] for name, lines in session_parts()]
    with open(os.path.join(here, 'dblpctl.session'), 'w', encoding='utf-8') as file:
        file.write('\n\n'.join('\n'.join(part) for part in parts) + '\n')


# Recording, in a VM

def attach(group=0):
    """A netlink socket, the number of the family, and a function that sends requests."""
    nl = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
    nl.bind((0, 0))

    def ask(command, kind, flags, data=b''):
        nl.send(generic(command, data, kind, 1 | flags, 1))
        while True:
            reply = nl.recv(1 << 16)
            while reply:
                size, kind, flags = struct.unpack_from('=IHH', reply)
                if kind < 16:
                    return
                yield reply[20:size]
                reply = reply[size + 3 & ~3:]
                if not flags & NLM_F_MULTI:
                    return
    found = next(ask(3, GENL_CTRL, 0, attribute(2, b'dblp\0')))
    pairs = {}
    while found:
        size, number = struct.unpack_from('=HH', found)
        pairs[number] = found[4:size]
        found = found[size + 3 & ~3:]
    if group:
        # The family has one group, whose number is the only attribute of 32 bits in it
        at = pairs[7].index(struct.pack('=HH', 8, 2))
        nl.setsockopt(270, 1, struct.unpack_from('=I', pairs[7], at + 4)[0])
    return nl, struct.unpack('=H', pairs[1])[0], ask


def record_objects(scene):
    """Print all objects of the module."""
    print(f'@{scene}')
    _, family, ask = attach()
    for command in ('SOCKET_GET', 'PHASE_GET', 'JOB_GET', 'PARAM_GET', 'CC_GET', 'STATS_GET'):
        dump = 0 if command in ('PARAM_GET', 'STATS_GET') else NLM_F_DUMP
        for data in ask(COMMANDS.index(command) + 1, family, dump):
            print(as_text(command, unpack(set_of(command), data)))


SETTINGS = '''
    phase set 5 name warm-up loss 2% close early order sequential fill keep cap 1%
    phase set 7 name last loss 1ppm order shuffled
    job add 7 phase critical name resnet
    job add 8 clr on low 1% high 50% eta 0.25 hold 3 name sums
    job add 9 owner nobody
    param set congestion lossy cap 2% timeout 90s keepalive 1.5s gso off'''

def record():
    """Print all scenes."""
    if NETNS not in os.environ:
        os.execvpe('unshare', ['unshare', '-n', sys.executable, *sys.argv], {**os.environ, NETNS: '1'})

    def ctl(text):
        subprocess.run(['dblpctl', '-b', '-'], input=text.encode(), check=True)

    def peer(*words, until=b'ready\n'):
        process = subprocess.Popen(['dblp-peer', *words], stdout=subprocess.PIPE)
        while process.stdout.readline() not in (until, b''):
            pass
        return process
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    print('# Replies and events of the module: see dblpctl.py --record')
    record_objects('fresh')
    ctl(SETTINGS)
    peer('listen', '::', '7000', 'say', 'ready', 'pause')
    # A message is left unread by the second one
    for address, port, read, words in (('127.0.0.1', '7002', '3', ()), ('::1', '7001', '2', (
            'set', 'budget', '8000', 'set', 'cap', '500000', 'set', 'job', '7'))):
        peer('set', 'cap', '1000000', 'listen', address, port, 'say', 'ready', 'accept', 'recv', read,
             'pause')
        peer('socket', *words, 'connect', address, port, 'send', '3', '100000', 'say', 'ready', 'pause')
    peer('socket', 'set', 'job', '8', 'norm', '9007199254740993', 'say', 'ready', 'pause')
    time.sleep(2)
    record_objects('busy')
    print('@events')
    nl, _, _ = attach(1)
    ctl('job add 70 phase critical name vgg clr on')
    peer('socket', 'set', 'job', '70', 'norm', '6442450944', 'norm', '6442450944')
    ctl('job set 70 name resnet_2\njob del 70\nphase set 6 name mine loss 2% close early cap 1%\nphase del mine')
    peer('fails', 'ECONNREFUSED', 'connect', '::1', '7009')
    peer('set', 'cap', '1000000', 'listen', '::1', '7010', 'say', 'ready', 'accept', 'recv', '1', 'pause')
    peer('set', 'budget', '500000', 'tag', '18446744073709551615', 'connect', '::1', '7010',
         'send', '1', '100000')
    time.sleep(2)
    nl.setblocking(False)
    try:
        while data := nl.recv(1 << 16):
            command = COMMANDS[data[16] - 1]
            print(as_text(command, unpack('A_EVENT', data[20:])))
    except BlockingIOError:
        pass
    return 0


# Tests that a session cannot express

LISTS = ('socket list', 'socket list -p', 'phase list', 'job list', 'job stats 8', 'param list', 'cc list',
         'stats', 'stats nonzero', 'top -i 1ms', 'socket show {id}', 'phase show 5', 'job show 7')


def first_id(bench):
    """The number of the first socket, as a word."""
    return dict(bench.kernel.objects['SOCKET_GET'][0])['ID']


def types_in_json_are_those_of_the_manual_page(bench):
    """And the page has exactly the keys that are printed."""
    wanted = {}
    with open(os.path.join(top, 'selftests/build/json-types'), encoding='utf-8') as file:
        for line in file:
            kind, key, types, *_ = line.split()
            wanted.setdefault(kind, {})[key] = types.split(',')
    shown = {kind: bench.json(kind, 'list', *(['-p'] if kind == 'socket' else []))[0]
             for kind in ('socket', 'phase', 'job', 'param')}
    shown['top'] = bench.json('top', '-i', '1ms')[0]
    heard = bench.run('-j', 'monitor', stderr=subprocess.DEVNULL, order='events')
    shown['monitor'] = [json.loads(line) for line in heard.splitlines()]
    for kind, objects in shown.items():
        objects = [{k: v for k, v in o.items() if k != 'event'}
                   for o in ([objects] if isinstance(objects, dict) else objects)]
        same({key for o in objects for key in o}, set(wanted[kind]), f'keys of {kind}')
        for key, value in [pair for o in objects for pair in o.items()]:
            found = {str: 'string', int: 'number', bool: 'boolean', list: 'array'}[type(value)]
            if found == 'string' and value.isdigit() and 'digits' in wanted[kind][key]:
                found = 'digits'
            if found not in wanted[kind][key]:
                raise Failed(f'{kind} {key} is {value!r}, not {wanted[kind][key]}')


def pretty_json_is_the_same_json(bench):
    """-p adds only line breaks."""
    for words in LISTS[:-3]:
        same(bench.json('-p', *words.split()), bench.json(*words.split()), words)


def list_and_show_agree(bench):
    """show prints each object as list does."""
    for kind in ('socket', 'phase', 'job'):
        for one in bench.json(kind, 'list')[0]:
            same(bench.json(kind, 'show', str(one['id'])), [one])


def counters_agree_in_text_in_json_and_in_the_help(bench):
    """And nonzero omits exactly the zeroes."""
    counters, = bench.json('stats')
    text = [line.split()[:2] for line in bench.run('stats').splitlines()]
    same(text, [[key, str(n)] for key, n in counters.items()])
    described = re.findall(r'^  ([A-Z]\w+) ', bench.run('stats', 'help'), re.M)
    same(described, list(counters))
    same(bench.json('stats', 'nonzero'), [{k: n for k, n in counters.items() if n}])
    same(any(n == 0 for n in counters.values()) and len(counters) > 40, True, 'a zero')


def metrics_of_prometheus(bench):
    """They have the values of stats, each with help and type; the dashboard has no others."""
    bench.kernel.objects['JOB_GET'] = [[('ID', '7'), ('NAME', r"'a\"b'"), ('STATS', '[PHASE=1,BYTES=5q]')]]
    types, values, known = {}, {}, set()
    for line in bench.run('stats', '--prometheus').splitlines():
        head = re.fullmatch(r'# (HELP|TYPE) (dblp_[a-z_]+) (.+)', line)
        if head and head[1] == 'TYPE':
            types[head[2]] = head[3]
        elif not head:
            name, labels, value = re.fullmatch(r'(dblp_[a-z_]+)\{((?:,?[a-z_]+="(?:[^"\\]|\\.)*")*)\} (\d+)', line).groups()
            same(name, list(types)[-1], 'the metric of a sample')
            same(types[name], 'counter' if name.endswith('_total') else 'gauge', f'type of {name}')
            values[name, labels] = int(value)
            known |= set(re.findall(r'([a-z_]+)="', labels))
    same(known & {'job', 'instance'}, set(), 'labels that Prometheus sets itself')
    for name, value in bench.json('stats')[0].items():
        same(values['dblp_' + re.sub('(?<!^)([A-Z])', r'_\1', name).lower() + '_total', ''], value, name)
    same(values['dblp_job_bytes_total', r'dblp_job="7",name="a\\\"b",phase="1"'], 5)
    same(values['dblp_build_info', f'version="{bench.version}"'], 1)
    for file in ('grafana-dashboard.json',):
        with open(os.path.join(top, 'Documentation/examples', file), encoding='utf-8') as file:
            queries = str(json.load(file))
        same(set(re.findall(r'\bdblp_[a-z_]+', queries)) - set(types) - known, set(), 'unknown metrics in the dashboard')
        used = ' '.join(re.findall(r'by \(([^)]*)\)', queries) + re.findall(r'{{(\w+)}}', queries))
        same(set(re.findall(r'\w+', used)) - known - {'instance'}, set(), 'unknown labels in the dashboard')


def a_batch_with_an_invalid_line_runs_no_command(bench):
    """It prints nothing and sends no request."""
    asked = []
    bench.kernel.each = asked.append
    good = ('help', 'job help', 'stats help', 'version', 'doctor', 'save', 'stats', 'monitor', 'param list',
            'param set timeout 1s', 'job del 7', 'job add 2 name two', 'job set two phase critical',
            'job replace 3', 'job flush', 'phase flush')
    for line in ('jog', 'job x', 'job add', 'job add 5 name', 'job set one clr maybe', 'phase set 0 loss 2',
                 'cc show', 'param set cap', 'param show x', 'socket set x loss 1%', 'stats -c 1',
                 'monitor x', 'save 1 2', 'doctor x', 'doctor ::1 0', 'version x', 'help x', 'job help x',
                 'begin', 'complete'):
        said = bench.run('-b', '-', stdin='\n'.join([*good, line]))
        same((bench.status, asked), (2, []), line)
        same(bool(re.fullmatch(r'dblpctl: -:17: .*\n', said)), True, said)
    with open(os.path.join(bench.folder, 'lines'), 'w', encoding='utf-8') as file:
        file.write('phase list\njob\0list\n')
    same((bench.run('-b', 'lines'), asked), ('dblpctl: lines:2: this line has a NUL character\n', []))


def a_truncated_saved_state_changes_nothing(bench):
    """After any number of bytes."""
    saved = bench.run('save')
    bench.run('-b', '-', stdin=saved)
    same((bench.status, len(bench.kernel.changes)), (0, len(saved.splitlines()) - 2))
    bench.kernel.changes.clear()
    for size in [*range(1, 12), *range(17, len(saved) - 1, 29), len(saved) - 2]:
        said = bench.run('-b', '-', *(['-force'] if size % 2 else []), stdin=saved[:size])
        same((bench.status != 0, bench.kernel.changes), (True, []), f'after {size} bytes, {said!r}, it')
    same("- begins with 'begin' and does not end with 'complete'" in said, True, said)


def save_keeps_the_contents_of_the_file_if_it_fails(bench):
    """It keeps the mode, and a link to the file."""
    path = os.path.join(bench.folder, 'file')
    link = os.path.join(bench.folder, 'link')

    def contents():
        with open(path, encoding='utf-8') as file:
            return file.read()

    def small():
        # VMs in which this records lack them
        import resource
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
    saved = bench.run('save')
    same((bench.run('save', 'file'), contents()), ('', saved))
    os.symlink('file', link)
    os.chmod(path, 0o640)
    bench.kernel.order('add PHASE_GET ID=6 NAME=\'more\' BUDGET=0 POLICY=0 ORDER=0 FILL=0 BUDGET_CAP=0')
    same(bench.run('save', 'link'), '')
    more = contents()
    same(('name more' in more, os.path.islink(link), os.stat(path).st_mode & 0o777), (True, True, 0o640))
    for order, words, wanted in (
            ('refuse * EPERM', 'file', 'no permission: this needs CAP_NET_ADMIN in the network namespace (sudo)'),
            ('absent', 'file', 'the module dblp is not loaded; load it with: sudo modprobe dblp (or sudo insmod dblp.ko)'),
            ('torn 1000', 'file', 'the list changed during every attempt to read it and may be inconsistent: try again'),
            ('', '/dev/null', '/dev/null is not a regular file, so it is not replaced'),
            ('', 'none/x', 'cannot write none/x: No such file or directory')):
        same(bench.run('save', words, order=order), f'dblpctl: {wanted}\n')
        same((bench.status, contents()), (3 if 'torn' in order else 1, more))
    same(bench.run('save', 'new', preexec_fn=small), 'dblpctl: cannot write new: File too large\n')
    same((contents(), sorted(os.listdir(bench.folder))), (more, ['file', 'link']))


def full_disk(bench):
    """An output that cannot be written is an error."""
    with open('/dev/full', 'w', encoding='utf-8') as full:
        for words in ('socket list', 'save', '-j job list'):
            process = bench.start([DBLPCTL, *words.split()], stdout=full, stderr=subprocess.PIPE, text=True)
            same(process.communicate()[1], 'dblpctl: cannot write: No space left on device\n')
            same(process.returncode, 1)


def a_list_that_changes_is_read_ten_times(bench):
    """After ten attempts the exit status is 3."""
    whole = bench.run('-j', 'job', 'list')
    asked = []
    bench.kernel.each = asked.append
    # The tenth is the dump of phase names for the jobs, which are printed nevertheless
    for torn, status in ((1, 0), (9, 0), (10, 3)):
        said = bench.run('-j', 'job', 'list', stderr=subprocess.PIPE, order=f'torn {torn}')
        same((bench.status, said.endswith(whole)), (status, True))
        same(asked.count('JOB_GET'), min(torn + 1, 10), 'how often')
        asked.clear()


def a_list_of_100000_jobs_takes_linear_time(bench):
    """CPU time, and the list is complete; each job has its own message."""
    command, plain = COMMANDS.index('JOB_GET') + 1, bench.kernel.dump
    job = pack('A_JOB', bench.kernel.objects['JOB_GET'][0])
    jobs = [generic(command, attribute(1, struct.pack('=I', n)) + job[8:], flags=NLM_F_MULTI)
            for n in range(100000)]
    bench.kernel.dump = lambda asked, seq: plain(asked, seq) if asked != 'JOB_GET' else [
        *(one[:8] + struct.pack('=I', seq) + one[12:] for one in jobs[:count]),
        message(3, NLM_F_MULTI, seq, bytes(4))]

    import resource

    def used():
        # The sum is exact, how it is divided is sampled
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime

    def seconds():
        before = used()
        found = bench.json('job', 'list')[0]
        same([one['id'] for one in found], list(range(count)), 'what is listed')
        return used() - before
    count = 10000
    few = min(seconds() for _ in range(3))
    count = len(jobs)
    same(seconds() < 30 * few, True, f'less than 30 times {few} s for ten times as many')


def a_state_that_changes_permanently_is_not_saved(bench):
    """One change is tolerated, permanent changes are not."""
    params = dict(bench.kernel.objects['PARAM_GET'][0])
    left = 0

    def change(command):
        nonlocal left
        if command == 'PARAM_GET' and left:
            left -= 1
            params['KEEPALIVE_MS'] = str(int(params['KEEPALIVE_MS']) + 1)
            bench.kernel.objects['PARAM_GET'] = [list(params.items())]
    bench.kernel.each = change
    for left, wanted in ((1, ''), (1000, 'dblpctl: the state changed during every attempt to read it: try again\n')):
        same(bench.run('save', 'kept'), wanted)
        same(bench.status, 3 if wanted else 0)
    os.unlink(os.path.join(bench.folder, 'kept'))


def the_processes_that_have_a_socket_open(bench):
    """Two after a fork; a newline in a name is escaped."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        inode = os.fstat(sock.fileno()).st_ino
        number = first_id(bench)
        bench.kernel.objects['SOCKET_GET'] = [[
            (name, f'{inode}q' if name == 'INODE' else text)
            for name, text in bench.kernel.objects['SOCKET_GET'][0]]]
        odd = os.path.join(bench.folder, 'two\nlines')
        os.symlink('/usr/bin/sleep', odd)
        with subprocess.Popen([odd, '1000'], pass_fds=[sock.fileno()]) as child:
            while odd.encode() not in open(f'/proc/{child.pid}/cmdline', 'rb').read():
                time.sleep(0.01)
            with open('/proc/self/comm', encoding='utf-8') as file:
                me = file.read().rstrip('\n')
            wanted = sorted([(os.getpid(), me), (child.pid, 'two\nlines')])
            try:
                shown = bench.json('socket', 'list', '-p')[0][0]
                same([(p['pid'], p['name']) for p in shown['processes']], wanted)
                table = bench.run('socket', 'list', '-p', 'state', 'listen').splitlines()
                same([line.split()[-1] for line in table], ['PROCESSES', ','.join(
                    f'{pid}/{name}' for pid, name in wanted).replace('\n', '\\x0a')])
            finally:
                child.kill()
        same('PROCESSES' in bench.run('socket', 'list'), False)
        same(bench.json('socket', 'show', number)[0].get('processes'), None)


def help_at_each_level(bench):
    """For each object that completion knows."""
    usage = bench.run('help')
    same((bench.status, usage.startswith('Usage: dblpctl [OPTION...] OBJECT [VERB]')), (0, True))
    same([bench.run(word) for word in ('--help', '-help', '-h')], [usage] * 3)
    same((bench.run(), bench.status), (usage, 2))
    for kind in bench.complete('dblpctl ').split():
        words = [kind, 'help'][kind == 'help':]
        said = bench.run(*words)
        same((bench.status, said.startswith('Usage: dblpctl')), (0, True), said)
        for times in re.findall(r'-i TIME .*?\(([^;)]*)', said):
            for example in times.split(', '):
                said = bench.run('-b', '-', stdin=f'{kind} -i {example}\nno-object')
                same(said.startswith('dblpctl: -:2: '), True, said)
        same((bench.run(*words, 'x'), bench.status), ("dblpctl: unexpected word 'x'\n", 2))


def the_session_has_all_that_completion_knows(bench):
    """Each object and verb; and completion knows namespaces."""
    tried = [' '.join(w for w in line.split()[1:] if w[0] != '-')
             for _, lines in session_parts() for line in lines if line.startswith('$')]
    for kind in bench.complete('dblpctl ').split():
        for verb in bench.complete(f'dblpctl {kind} ').split() or ['']:
            if verb[:1] != '-' and (kind, verb) != ('help', '') and verb != 'help':
                same(any(line.startswith(f'{kind} {verb}'.strip()) for line in tried), True, f'{kind} {verb}')
    with open(os.path.join(bench.folder, 'ip'), 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\necho "one (id: 0)"; echo other\n')
    os.chmod(file.name, 0o755)
    env = {'PATH': f'{bench.folder}:/usr/bin:/bin'}
    same([bench.complete(f'dblpctl -j {words}', env=env) for words in ('-N o', '-netns on', '-N one ve')],
         ['one other\n', 'one\n', 'version\n'])


def rising(bench, command, *names):
    """Let these counters rise by 1000 with each request; returns the times of requests."""
    times = []
    pairs = dict(bench.kernel.objects[command][0])

    def rise(asked):
        if asked != command:
            return
        times.append(time.monotonic())
        for name in names:
            pairs[name] = f'{int(pairs[name].rstrip("q")) + 1000}q'
        bench.kernel.objects[command] = [list(pairs.items())]
    bench.kernel.each = rise
    return times


def rates_of_rising_counters(bench):
    """1000 per interval of any length: dblpctl reads its clock between two requests."""
    for words, command, names, key, rise in (
            ('stats', 'STATS_GET', ['MSG_SENT'], 'MsgSent', 1000),
            ('top', 'SOCKET_GET', ['BYTES_DELIVERED', 'BYTES_FORGIVEN_SENT'], 'asked', 2000)):
        bench.reset()
        bench.kernel.objects[command] = bench.kernel.objects[command][:1]
        times = rising(bench, command, *names)
        rows = bench.json(words, '-i', '10ms', '-c', '30')
        rows = [r[0] if isinstance(r, list) and r[0]['sockets'] else r[-1] if isinstance(r, list) else r
                for r in rows]
        spent = sum(rise / row[key] for row in rows)
        least, most = times[-1] - times[1], time.monotonic() - times[0]
        same((len(rows), len(times), least * 0.95 <= spent <= most * 1.05), (30, 31, True),
             f'{least} <= {spent} <= {most}')
        if words == 'stats':
            same([list(row) for row in rows], [[key]] * 30)


def rates_of_all_counters(bench):
    """Also of counters that do not change, and with the time."""
    rows = bench.json('-t', 'stats', 'all', '-i', '1ms', '-c', '2')
    same([len(row) for row in rows], [len(bench.json('stats')[0]) + 1] * 2)
    same(rows[0]['time'] < rows[1]['time'], True, [row['time'] for row in rows])


class Terminal:
    """dblpctl top on a terminal of 40 columns and 10 rows."""

    def __init__(self, bench, *words):
        import fcntl
        import pty
        import signal
        import termios
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('=HHHH', 10, 40, 0, 0))
        self.modes = termios.tcgetattr(self.ours)

        def as_a_shell_does():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.process = bench.start([DBLPCTL, 'top', *words], stdin=theirs, stdout=theirs, stderr=theirs,
                                   preexec_fn=as_a_shell_does)
        self.theirs, self.shown = theirs, b''

    def read_until(self, text):
        """Read the output until it has this text."""
        while text not in self.shown:
            if not select.select([self.ours], [], [], 60)[0]:
                raise Failed(f'{text!r} is not shown, but {self.shown!r}')
            self.shown += os.read(self.ours, 4096)

    def end(self):
        """Exit status, and whether the terminal modes are unchanged."""
        import termios
        status = self.process.wait(30)
        # After END, all output has been read
        os.write(self.theirs, b'END')
        self.read_until(b'END')
        kept = termios.tcgetattr(self.ours) == self.modes
        os.close(self.ours)
        os.close(self.theirs)
        return status, kept


def output_fits_the_terminal(bench):
    """Longer lines would wrap, more lines would scroll."""
    jobs = bench.kernel.objects['JOB_GET']
    bench.kernel.objects['JOB_GET'] = [[('ID', str(n)), *jobs[0][1:]] for n in range(1, 21)]
    bench.kernel.objects['SOCKET_GET'] = [[(k, '0' if k == 'JOB' else v) for k, v in
                                           bench.kernel.objects['SOCKET_GET'][0]]]
    terminal = Terminal(bench, '-i', '10ms', '-c', '2')
    same(terminal.end(), (0, True))
    screen = terminal.shown.decode().replace('\r', '').removesuffix('END')
    blocks = screen.split('\x1b[H\x1b[J')
    same((len(blocks), blocks[0]), (3, '\n' * 10))
    lines = blocks[2].splitlines()
    same(max(len(line) for line in lines), 40, 'the longest line')
    same([line.split()[0] for line in lines], ['JOB', '1', '2', '3', '4', '5', 'none', '15'])


def an_interrupt_ends_top_and_keeps_the_terminal_modes(bench):
    """The output has no escape sequences with a ?, which change modes."""
    terminal = Terminal(bench, '-i', '10ms')
    terminal.read_until(b'JOB')
    os.write(terminal.ours, b'\x03')
    same(terminal.end(), (-2, True))
    same(b'\x1b[?' in terminal.shown, False)


def findings_of_the_doctor(bench):
    """With fake files in /proc, /sys, /lib/modules and /var/lib."""
    root = os.path.join(bench.folder, 'root')
    installed = f'/lib/modules/{os.uname().release}/updates'
    kallsyms = '0 T setup_udp_tunnel_sock\n0 T udp_sock_create6\n'
    firmware = '/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c'
    loaded = {'/sys/module/dblp/version': bench.version + '\n'}
    reload = 'sudo modprobe -r dblp && sudo modprobe dblp'
    core = '/proc/sys/net/core/'
    path = os.path.join(bench.folder, 'bin')
    os.mkdir(path)
    with open(os.path.join(path, 'modinfo'), 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\ncat "$3"\n')
    os.chmod(file.name, 0o755)

    def finds(files, check, result, found='', command=None):
        subprocess.run(['rm', '-rf', root], check=True)
        for name, text in files.items():
            os.makedirs(os.path.dirname(root + name), exist_ok=True)
            with open(root + name, 'w', encoding='latin-1') as file:
                file.write(text)
        said = json.loads(bench.run('-j', 'doctor', env={'ROOT': root, 'PATH': f'{path}:/usr/bin:/bin'}))
        bad = 'bad' in [f['result'] for f in said]
        same(bench.status, int(bad), 'the status')
        which = [f for f in said if f['check'] == check]
        same([(f['result'], found in f['found']) for f in which], [(result, True)] if result else [], which)
        if command is not None:
            same(which[0]['command'], command)
    finds(loaded, 'module', 'ok', f'dblp and dblpctl are of version {bench.version}', '')
    finds({'/sys/module/dblp/version': '9.1\n'}, 'module', 'bad',
          f'dblp is 9.1, dblpctl is {bench.version}: install both from one source', reload)
    finds({'/sys/module/dblp/version': f'{bench.version[:-1]}%\n'}, 'module', 'bad')
    finds({'/proc/kallsyms': kallsyms}, 'module', 'bad', 'dblp is not loaded', 'sudo modprobe dblp')
    finds({'/proc/kallsyms': kallsyms[:30]}, 'module', 'bad', 'needs udp_tunnel and ip6_udp_tunnel',
          'sudo modprobe -a udp_tunnel ip6_udp_tunnel && sudo modprobe dblp')
    finds({firmware: '\6\0\0\0\1'}, 'secure-boot', 'note', '',
          'sudo mokutil --import /var/lib/dkms/mok.pub && sudo reboot')
    shim = '/var/lib/shim-signed/mok/MOK.der'
    finds({firmware: '\6\0\0\0\1', shim: ''}, 'secure-boot', 'note', '', f'sudo mokutil --import {shim} && sudo reboot')
    finds({firmware: '\6\0\0\0\1', shim: '', '/var/lib/dkms/mok.pub': ''}, 'secure-boot', 'note', '',
          'sudo mokutil --import /var/lib/dkms/mok.pub && sudo reboot')
    finds({**loaded, firmware: '\6\0\0\0\1'}, 'secure-boot', 'ok')
    finds({**loaded, firmware: '\6\0\0\0\0'}, 'secure-boot', '')
    finds({'/sys/module/module/parameters/sig_enforce': 'Y\n'}, 'secure-boot', 'note')
    finds({**loaded, installed + '/dblp.ko': bench.version}, 'installed', 'ok')
    finds({**loaded, installed + '/dblp.ko': '9.1'}, 'installed', 'bad', '9.1, but', reload)
    finds({**loaded, installed + '/dblp.ko': '', installed + '/dkms/dblp.ko': ''}, 'installed', 'bad')
    finds(loaded, 'installed', 'note', 'dblp is not installed for this kernel')
    for release, gso, result in (('6.12.95+deb12-amd64', 1, 'ok'), ('7.0.0-14-generic', 1, 'note'), ('7.0', 1, 'note'),
                                 ('7.1.4-200.fc44', 1, 'note'), ('7.1.4', 0, 'ok'), ('7.1.5', 1, 'ok'), ('7.2-rc1', 1, 'ok')):
        bench.kernel.objects['PARAM_GET'] = [[('GSO', str(gso))]]
        finds({**loaded, '/proc/sys/kernel/osrelease': release + '\n'}, 'kernel', result, release,
              'sudo dblpctl param set gso off' if result == 'note' else '')
    bench.kernel.objects['PARAM_GET'] = [[('CONGESTION', "'sqrt'")]]
    finds({**loaded, '/proc/sys/kernel/osrelease': '7.1.0\n'}, 'kernel', 'note')
    finds(loaded, 'kernel', '')
    for name, least, verdict in (('netdev_max_backlog', 1000, 'bad'), ('rmem_max', 4 << 20, 'note'),
                                 ('wmem_max', 4 << 20, 'note')):
        finds({**loaded, core + name: f'{least}\n'}, name, 'ok', str(least), '')
        finds({**loaded, core + name: f'{least - 1}\n'}, name, verdict, str(least - 1),
              f'sudo sysctl -w net.core.{name}={least}')
        finds(loaded, name, '')


TESTS = (types_in_json_are_those_of_the_manual_page, pretty_json_is_the_same_json,
         list_and_show_agree, counters_agree_in_text_in_json_and_in_the_help, metrics_of_prometheus,
         a_batch_with_an_invalid_line_runs_no_command, a_truncated_saved_state_changes_nothing,
         save_keeps_the_contents_of_the_file_if_it_fails, full_disk, help_at_each_level,
         the_session_has_all_that_completion_knows, a_list_that_changes_is_read_ten_times,
         a_list_of_100000_jobs_takes_linear_time, a_state_that_changes_permanently_is_not_saved,
         the_processes_that_have_a_socket_open, rates_of_rising_counters, rates_of_all_counters,
         output_fits_the_terminal, an_interrupt_ends_top_and_keeps_the_terminal_modes,
         findings_of_the_doctor)


def run_tests(bench):
    """Print TAP; returns the exit status."""
    points = [(name, lambda lines=lines: check_session(bench, lines)) for name, lines in session_parts()]
    points += [(test.__name__.replace('_', ' '), lambda test=test: test(bench)) for test in TESTS]
    bad = 0
    print('TAP version 13')
    for number, (name, run) in enumerate(points, 1):
        subprocess.run(['find', bench.folder, '-mindepth', '1', '-delete'], check=True)
        begin, verdict = time.monotonic(), 'ok'
        bench.reset()
        try:
            run()
        except Exception as error:
            bad, verdict = bad + 1, 'not ok'
            print('\n'.join(f'# {line}' for line in (str(error) or repr(error)).splitlines()))
            if not isinstance(error, Failed):
                import traceback
                print('\n'.join(f'# {line}' for line in traceback.format_exc().splitlines()))
        print(f'# {1000 * (time.monotonic() - begin):.0f} ms')
        print(f'{verdict} {number} {name}', flush=True)
    print(f'1..{len(points)}')
    return int(bad > 0)


def main():
    """Run one of the three commands."""
    if sys.argv[1:] == ['--record']:
        return record()
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        if sys.argv[1:] == ['--update']:
            return update(bench)
        if sys.argv[1:]:
            print(__doc__.strip())
            return 0 if sys.argv[1] in ('-h', '--help') else 2
        return run_tests(bench)


if __name__ == '__main__':
    sys.exit(main())
