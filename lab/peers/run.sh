#!/usr/bin/env bash
# Runs vram and its peers on a GPU, in turns, and tells what came out: see README.md beside this file.
#
#   run.sh check      what is here and what is missing; exit code 1 where nothing could run
#   run.sh scenarios  loops: one size, many sizes, batches, threads
#   run.sh traces     recorded workloads: cold, warm, paced, under a limit
#   run.sh all        both
#   run.sh kernels    operations on tensors, launches and starts, beside PyTorch's; no part of all
#
# The environment says how (defaults in brackets):
#   VRAM       the command vram [.dev/vram, bin/vram or what go builds]
#   DRIVER     its driver [dynamic]
#   TRACES     a folder of *.csv.gz [.dev/traces, else those that are part of the program]
#   OUT        where results go [bin/peers]
#   BUILD      where programs and unpacked traces go [bin/peers-build]
#   BUDGET_S   seconds that a part may take [440; kernels 200]
#   ROUNDS     rounds at most; as many run as there is time for [5; kernels 2]
#   PASSES     how often each process plays its trace in a round: once cold, then warm [21]
#   CUPY_PASSES  how often CuPy does, whose calls come from Python [5]
#   PEERS      who takes part [vram torch torch-expandable cudaMallocAsync cudaMalloc cupy]; also vram-lean, vram-fast
#   SCENARIOS  which [all of them]
#   REPETITIONS, TIME_MS, SAMPLES  of each measurement in a round [3, 20, 5000]
#   WORK_US    other work between the requests of a paced round [5]
#   LIMIT      most that may be held under pressure, in peak live bytes [1.02]
#   CORES      what one thread does runs on so many processors, those that are quietest just before [2; 0: on all]
#   DEADLINE_S when a peer gives up a trace under pressure [6]
#   KERNELS    rows of kernels, by what their names begin with, with commas [all]
#   COMPILE_S  seconds that torch.compile may take, 0 for none [60]
#   CXX, CXXFLAGS  the compiler [g++ -O2]
#   STANDIN    a folder of headers to build against where there is no CUDA; its figures mean nothing
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

out=${OUT:-$root/bin/peers}
build=${BUILD:-$root/bin/peers-build}
driver=${DRIVER:-dynamic}
budget_s=${BUDGET_S:-$([ "${1:-}" = kernels ] && echo 200 || echo 440)}
rounds=${ROUNDS:-$([ "${1:-}" = kernels ] && echo 2 || echo 5)}
kernels=${KERNELS:-}
compile_s=${COMPILE_S:-60}
passes=${PASSES:-21}
cupy_passes=${CUPY_PASSES:-5}
repetitions=${REPETITIONS:-3}
time_ms=${TIME_MS:-20}
samples=${SAMPLES:-5000}
work_us=${WORK_US:-5}
limit=${LIMIT:-1.02}
deadline_s=${DEADLINE_S:-6}
cores=${CORES:-2}
standin=${STANDIN:-}
read -r -a cxxflags <<<"${CXXFLAGS:--O2}"
read -r -a peers <<<"${PEERS:-vram torch torch-expandable cudaMallocAsync cudaMalloc cupy}"
read -r -a scenarios <<<"${SCENARIOS:-pair lifo batch varied own-streams one-stream record use transfer paced warmup}"
[ -z "$standin" ] || export PYTHONPATH=$standin${PYTHONPATH:+:$PYTHONPATH}
# Settings of PyTorch's allocator that a caller happens to have would be measured instead of its own.
unset PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF PYTORCH_NO_CUDA_MEMORY_CACHING

say() { printf '%s\n' "$*" >&2; }

# find_vram sets vram to the command, and builds it where it must.
find_vram() {
	vram=${VRAM:-}
	for candidate in "$root/.dev/vram" "$root/bin/vram"; do
		[ -n "$vram" ] || [ ! -x "$candidate" ] || vram=$candidate
	done
	if [ -z "$vram" ] && command -v go >/dev/null; then
		(cd "$root" && go build -o bin/vram ./cmd/vram) && vram=$root/bin/vram
	fi
	if ! [ -x "$vram" ]; then
		say "missing: the command vram: set VRAM, or build bin/vram where there is Go (make bench-gpu-carry)"
		return 1
	fi
}

# check says what is missing. Only what nothing can do without makes it fail.
check() {
	local missing=0 name
	command -v python3 >/dev/null || { say "missing: python3, which makes the tables"; missing=1; }
	command -v timeout >/dev/null || { say "missing: timeout, of the coreutils"; missing=1; }
	command -v taskset >/dev/null || [ "$cores" = 0 ] || { say "missing: taskset, of util-linux: a trace is played on any processor"; cores=0; }
	[ "$missing" = 0 ] || return 1
	find_vram || missing=1
	if [ -z "$standin" ]; then
		if name=$(python3 "$here/machine.py" gpu 2>&1); then
			say "GPU: $name"
		else
			say "missing: a GPU: $name"
			missing=1
		fi
		command -v "${CXX:-g++}" >/dev/null || say "missing: ${CXX:-g++}: without it torch and cudaMalloc are left out"
		for peer in torch cuda; do
			name=$(python3 "$here/machine.py" flags "$peer" 2>&1 >/dev/null) || say "missing: $name: without it the peers of src/$peer.cpp are left out"
		done
		python3 "$here/machine.py" has cupy || say "missing: CuPy: it is left out"
	fi
	return "$missing"
}

# compile builds one of the programs where it is older than its sources; what the compiler says is in the log.
compile() {
	local name=$1 flags=()
	if [ -x "$build/peer-$name" ] && [ -z "$(find "$here/src" -newer "$build/peer-$name")" ]; then return 0; fi
	rm -f "$build/peer-$name"
	if [ -n "$standin" ]; then
		flags=("-I$standin")
	elif ! mapfile -t flags < <(python3 "$here/machine.py" flags "$name") || [ "${#flags[@]}" = 0 ]; then
		return 1
	fi
	local kind standard abi
	# What PyTorch's headers want depends on its age: new ones C++20, old ones the old ABI of the C++ library.
	for kind in "20 1" "17 1" "17 0"; do
		read -r standard abi <<<"$kind"
		if timeout 120 "${CXX:-g++}" "-std=c++$standard" "${cxxflags[@]}" -pthread "-D_GLIBCXX_USE_CXX11_ABI=$abi" \
			"$here/src/$name.cpp" -o "$build/peer-$name" "${flags[@]}" >>"$log" 2>&1; then
			return 0
		fi
	done
	return 1
}

compile_all() {
	local name
	local -A jobs=()
	for name in torch cuda; do
		compile "$name" &
		jobs[$name]=$!
	done
	for name in torch cuda; do
		wait "${jobs[$name]}" || say "src/$name.cpp does not compile here: see $log"
	done
}

# present reports whether a peer can take part.
present() {
	case $1 in
	vram | vram-lean | vram-fast) [ -x "$vram" ] ;;
	torch | torch-expandable) [ -x "$build/peer-torch" ] ;;
	cudaMallocAsync | cudaMalloc) [ -x "$build/peer-cuda" ] ;;
	cupy) python3 "$here/machine.py" has cupy ;;
	*)
		say "unknown peer $1"
		return 1
		;;
	esac
}

# takes_part reports whether a peer has the scenario.
takes_part() {
	local peer=$1 scenario=$2
	case $peer/$scenario in
	vram/*) return 0 ;;
	torch*/record) return 0 ;;
	vram-lean/* | vram-fast/* | */record | */use | */transfer) return 1 ;;   # the footprint is a mode of what traces ask for
	cupy/own-streams | cupy/one-stream) return 1 ;; # threads of Python take turns by themselves
	esac
}

# command_of sets command to a peer's program, up to what is asked of it.
command_of() {
	case $1 in
	vram*) command=("$vram") ;;
	torch) command=("$build/peer-torch" -impl torch) ;;
	torch-expandable) command=(env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "$build/peer-torch" -impl torch-expandable) ;;
	cudaMallocAsync) command=("$build/peer-cuda" -impl "$1" -kind async) ;;
	cudaMalloc) command=("$build/peer-cuda" -impl "$1" -kind plain) ;;
	torch-kernels) command=(python3 "$here/torch_kernels.py") ;;
	cupy) command=(python3 "$here/cupy_peer.py") ;;
	esac
}

# quiet_cores sets placed to what starts a program on the quietest processors; to nothing where that is not asked for.
quiet_cores() {
	placed=()
	[ "$cores" = 0 ] || placed=(taskset -c "$(python3 "$here/machine.py" quiet "$cores")")
}

left_s() { echo $((until_s - SECONDS)); }

# run_one PEER KIND SUBJECT ROUND MOST_S ARGUMENT... runs a peer's program and adds what it printed to the rows: a line
# that names it, then its own lines. What it printed before it failed or ran out of time counts, too.
run_one() {
	local peer=$1 kind=$2 subject=$3 round=$4 most_s=$5 code=0 began=$SECONDS
	shift 5
	[ "$most_s" -lt "$(left_s)" ] || most_s=$(left_s)
	[ "$most_s" -gt 0 ] || return 0
	command_of "$peer"
	timeout -k 3 "$most_s" "${placed[@]}" "${command[@]}" "$@" >"$build/one.json" 2>"$build/one.err" || code=$?
	{
		printf '{"peer":"%s","kind":"%s","subject":"%s","round":%d,"code":%d}\n' "$peer" "$kind" "$subject" "$round" "$code"
		cat "$build/one.json"
		echo
	} >>"$rows"
	{
		printf '%s %s %s round %d: code %d, %d s\n' "$peer" "$kind" "$subject" "$round" "$code" "$((SECONDS - began))"
		tail -c 2000 "$build/one.err"
	} >>"$log"
	[ "$code" = 0 ] || [ "$kind" = pressure ] || say "$peer, $subject: code $code: $(tail -n 1 "$build/one.err" | cut -c 1-200)"
}

scenario_turn() {
	local scenario=$1 round=$2 peer some=$samples placed=()
	[ "$scenario" != warmup ] || some=500 # each sample of a hundred opens a device
	for peer in "${here_now[@]}"; do
		takes_part "$peer" "$scenario" || continue
		case $scenario in
		own-streams | one-stream) ;; # their threads take all processors
		*) quiet_cores ;;
		esac
		case $peer in
		vram) run_one vram bench "$scenario" "$round" 60 bench -json -driver "$driver" -impl vram -scenario "$scenario" \
			-repetitions "$repetitions" -time "${time_ms}ms" -samples "$some" ;;
		cupy) run_one cupy bench "$scenario" "$round" 60 bench --scenario "$scenario" \
			--repetitions "$repetitions" --time-ms "$time_ms" --samples "$some" ;;
		*) run_one "$peer" bench "$scenario" "$round" 60 -repetitions "$repetitions" -time-ms "$time_ms" \
			-samples "$some" -scenario "$scenario" bench ;;
		esac
	done
}

# trace_turn has all peers play a trace: once cold and twenty times warm, and once with other work between the requests. CuPy,
# which would take longer than all the others together, is warm four times.
trace_turn() {
	local trace=$1 round=$2 peer name placed
	name=$(basename "$trace" .csv.gz)
	for peer in "${here_now[@]}"; do
		quiet_cores
		case $peer in
		vram | vram-lean | vram-fast) run_one "$peer" replay "$name" "$round" 60 replay -json -driver "$driver" -rounds "$passes" \
			-footprint "$(footprint_of "$peer")" -gap "${work_us}us" "$trace" ;;
		cupy) run_one cupy replay "$name" "$round" 60 replay --rounds "$cupy_passes" --work-us "$work_us" "$build/traces/$name.csv" ;;
		cudaMalloc) ;; # 579,000 calls of 25 to 80 us, again and again
		*) run_one "$peer" replay "$name" "$round" 60 -rounds "$passes" -work-us "$work_us" replay "$build/traces/$name.csv" ;;
		esac
	done
}

# pressure_turn has all peers play a trace three times in hardly more memory than it holds at its peak.
pressure_turn() {
	local trace=$1 round=$2 peer name placed
	name=$(basename "$trace" .csv.gz)
	for peer in "${here_now[@]}"; do
		quiet_cores
		case $peer in
		vram | vram-lean | vram-fast) run_one "$peer" pressure "$name" "$round" 30 replay -json -driver "$driver" -rounds 3 \
			-footprint "$(footprint_of "$peer")" -limit "${limit}x" "$trace" ;;
		cupy) run_one cupy pressure "$name" "$round" 30 replay --rounds 3 --limit "$limit" --deadline-s "$deadline_s" "$build/traces/$name.csv" ;;
		cudaMalloc) ;; # holds what is live, and has no limit
		*) run_one "$peer" pressure "$name" "$round" 30 -rounds 3 -limit "$limit" -deadline-s "$deadline_s" replay "$build/traces/$name.csv" ;;
		esac
	done
}

footprint_of() {
	case $1 in
	vram-lean) echo lean ;;
	vram-fast) echo fast ;;
	*) echo balanced ;;
	esac
}

# begin PART prepares files, programs and the clock; begin_rows does without the programs in C++.
begin() {
	begin_rows "$1"
	compile_all
	here_now=()
	local peer
	for peer in "${peers[@]}"; do
		if present "$peer"; then here_now+=("$peer"); else say "$peer is left out"; fi
	done
}

begin_rows() {
	until_s=$((SECONDS + budget_s))
	mkdir -p "$out" "$build"
	rows=$out/rows-$1.jsonl log=$out/log-$1.txt
	: >"$rows"
	: >"$log"
	{
		printf '{"peer":"machine","kind":"about","subject":"%s","round":0,"code":0}\n' "$1"
		python3 "$here/machine.py" about
		printf '{"vram":"%s","vram_driver":"%s"}\n' "$("$vram" version | tr -d '"')" "$driver"
	} >>"$rows"
}

# in_rounds TURN SUBJECT... takes the subjects in turn, again and again, until the time or the rounds are over.
in_rounds() {
	local turn=$1 round subject first
	shift
	for ((round = 1; round <= rounds; round++)); do
		first=$SECONDS
		for subject in "$@"; do
			[ "$(left_s)" -gt 5 ] || { say "out of time in round $round"; return 0; }
			"$turn" "$subject" "$round"
		done
		say "round $round of $turn: $((SECONDS - first)) s, $(left_s) s left"
		[ "$turn" != trace_turn ] || [ "$round" != 1 ] || {
			for subject in "$@"; do pressure_turn "$subject" 1; done
			say "under a limit: $(left_s) s left"
		}
	done
}

tables() {
	python3 "$here/table.py" "$@" >"$out/table.txt" && python3 "$here/table.py" -markdown "$@" >"$out/table.md"
	cat "$out/table.txt"
}

run_scenarios() {
	begin scenarios
	in_rounds scenario_turn "${scenarios[@]}"
}

run_traces() {
	begin traces
	local folder=${TRACES:-$root/.dev/traces} trace
	[ -d "$folder" ] || folder=$root/internal/trace/data
	local traces=("$folder"/*.csv.gz)
	[ -e "${traces[0]}" ] || { say "missing: traces (*.csv.gz) in $folder"; return 1; }
	mkdir -p "$build/traces"
	for trace in "${traces[@]}"; do
		gzip -dc "$trace" >"$build/traces/$(basename "$trace" .gz)"
	done
	in_rounds trace_turn "${traces[@]}"
}

# run_kernels has both sides measure the same rows, one after the other, as often as there is time. torch.compile takes longest, and
# has one turn, after the first round.
run_kernels() {
	begin_rows kernels
	local round began ours=() theirs=() placed=() last_s=0
	[ -z "$kernels" ] || { ours=(-rows "$kernels"); theirs=(--rows "$kernels"); }
	local torch_samples=35 # as many as ours
	[ -z "$standin" ] || { theirs+=(--small --sample-ms 0.01); torch_samples=3; }
	python3 "$here/machine.py" has torch || say "missing: PyTorch: it is left out"
	for ((round = 1; round <= rounds; round++)); do
		[ "$(left_s)" -gt "$((last_s + 5))" ] || { say "out of time before round $round"; break; }
		began=$SECONDS
		run_one vram kernels all "$round" 120 bench -json -driver "$driver" -scenario kernels -repetitions 7 -time 20ms "${ours[@]}"
		! python3 "$here/machine.py" has torch ||
			run_one torch-kernels kernels all "$round" 120 --samples "$torch_samples" "${theirs[@]}"
		last_s=$((SECONDS - began))
		say "round $round: $last_s s, $(left_s) s left"
		[ "$round" != 1 ] || [ "$compile_s" = 0 ] || ! python3 "$here/machine.py" has torch ||
			run_one torch-kernels kernels compile 1 "$compile_s" --paths compile --samples "$torch_samples" "${theirs[@]}"
	done
	python3 "$here/kernels_table.py" "$rows" >"$out/kernels.md" && cat "$out/kernels.md"
}

case ${1:-} in
kernels) check && run_kernels ;;
check) check ;;
scenarios) check && run_scenarios && tables "$out/rows-scenarios.jsonl" ;;
traces) check && run_traces && tables "$out/rows-traces.jsonl" ;;
all) check && run_scenarios && run_traces && tables "$out/rows-scenarios.jsonl" "$out/rows-traces.jsonl" ;;
*)
	sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
	exit 2
	;;
esac
