# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # shared with those who source this
#
# Shared by 'make bench' and 'make experiments': measure scenarios in VMs, several at a
# time, and write reports. Source it with $top and $name set; the guest runs
# lab/$name/guest.sh. The sourcing script defines usage(), and
#
#	machine SCENARIO [ARGUMENT...]	which may set $mem and $machine
#	alone SCENARIO			succeeds if no other scenario may run at the same time

out=$top/build/$name
results=$top/Documentation/results
kernel=6.1
jobs=$(nproc)
seeds=5
first_seed=1
write=1
scenarios=()

die()
{
	printf '%s: %s\n' "$name" "$*" >&2
	exit 2
}

step()
{
	printf '== [%4d s] %s\n' "$SECONDS" "$*"
}

# options ALL CHOSEN [ARGUMENT...]: parse the command line; ALL are the names of all scenarios,
# CHOSEN those of the environment
options()
{
	local all=$1 chosen=$2 scenario
	shift 2

	while [ $# -gt 0 ]; do
		case $1 in
		--kernel|--jobs|--seeds|--seed|--out) [ $# -ge 2 ] || die "$1 needs a value" ;;
		esac
		case $1 in
		--kernel) kernel=$2; shift ;;
		--jobs) jobs=$2; shift ;;
		--seeds) seeds=$2; shift ;;
		--seed) first_seed=$2; shift ;;
		--out) out=$2; shift ;;
		--no-results) write= ;;
		-h|--help) usage; exit 0 ;;
		-*) die "unknown option '$1' (see --help)" ;;
		*) break ;;
		esac
		shift
	done
	for scenario in "--jobs $jobs" "--seeds $seeds" "--seed $first_seed"; do
		[[ $scenario =~ ' '[1-9][0-9]*$ ]] ||
			die "${scenario%% *} takes a number, not '${scenario#* }'"
	done
	scenarios=("$@")
	[ $# -gt 0 ] || read -r -a scenarios <<< "${chosen:-$all}"
	[ "${scenarios[*]}" = "$all" ] || write=
	for scenario in "${scenarios[@]}"; do
		case " $all " in
		*" $scenario "*) ;;
		*) die "there is no scenario '$scenario' (see --help)" ;;
		esac
	done
}

boot_name()
{
	local seed=$1
	shift

	printf '%s-seed-%s\n' "$(IFS=-; echo "$*")" "$seed"
}

# boot SEED SCENARIO [ARGUMENT...]: measure a scenario in a VM
boot()
{
	local seed=$1 name_of start=$SECONDS mem=1G
	local machine=(--virtual-time --seed "$seed" --timeout 3000)
	shift

	machine "$@"
	name_of=$(boot_name "$seed" "$@")
	mkdir -p "$out/$name_of"
	"$top/selftests/vm/run" "${machine[@]}" --kernel "$kernel" --mem $mem \
		--module "$out/dblp.ko" --out "$out/$name_of" -- \
		"/lab/$name/guest.sh" "$@" > "$out/$name_of/log" 2>&1 &
	# shellcheck disable=SC2064 # now
	trap "kill $!; exit 143" TERM
	if wait $!; then
		step "$name_of: $((SECONDS - start)) s"
	else
		tail -n 1 "$out/$name_of/log" > "$out/$name_of/failed"
		step "$name_of: FAILED after $((SECONDS - start)) s: $(cat "$out/$name_of/failed")"
	fi
}

# run_boots PATH...: run boot for each line of stdin, SEED SCENARIO [ARGUMENT...]. Seeds count
# from 1. Results are valid for the contents of the paths and of lab/$name.
run_boots()
{
	local words changed=''

	# shellcheck disable=SC2046 # words
	trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM HUP
	[ "$out" != "$top/build/$name" ] || rm -rf "$out"
	mkdir -p "$out" || exit 2
	[ -z "$(ls -A "$out")" ] || die "--out: $out is not empty"
	cat > "$out/boots"
	git -C "$top" diff --quiet HEAD -- net uapi selftests/lib "lab/$name" "$@" ||
		changed=", changed since"
	echo "$(git -C "$top" rev-parse --short HEAD)$changed" > "$out/commit"
	step "building dblp.ko for Linux $kernel and the tools"
	make -s -C "$top" tools lab || die "the tools do not build"
	"$top/selftests/vm/build" --kernel "$kernel" -o "$out/dblp.ko" || die "the module does not build"

	step "$(wc -l < "$out/boots") boots, $jobs at a time"
	while read -r -a words; do
		while [ "$(jobs -r -p | wc -l)" -ge "$jobs" ]; do
			wait -n
		done
		if alone "${words[1]}"; then
			wait
		fi
		boot $((words[0] + first_seed - 1)) "${words[@]:1}" < /dev/null &
	done < "$out/boots"
	wait
	step "done; logs are in ${out#"$top/"}"
}

# report PAGE: write the tables, figures and plots to the output directory; if all scenarios were
# measured, also update PAGE.md in Documentation/results
report()
{
	local page=$1 status

	python3 "$top/lab/$name/report.py" \
		--kernel "$(cat "$out"/*/release | sort -u | paste -s -d' ')" \
		--commit "$(cat "$out/commit")" --seeds "$seeds" \
		--notes "$top/lab/$name/notes" --template "$top/lab/$name/results.in" \
		--out "$out" "${scenarios[@]}"
	status=$?
	if [ -n "$write" ]; then
		cp "$out/$page.md" "$results/" || exit 2
		step "written to Documentation/results/$page.md; figures and plots are in ${out#"$top/"}"
	fi
	exit $status
}
