#!/usr/bin/env bash
# Trains GPT-2 in 1, 2 and 4 stages on one GPU, and in 2 and 4 stages and copies on as many GPUs as there are, and prints a table. The
# losses of one copy must be equal.
#
#   GPT    the program [bin/gpt, which go builds where it is missing]
#   STEPS  steps of each run [20]; the rate counts those after the first half
#   FLAGS  of all runs [-model 124m -type bfloat16 -batch 8 -parts 16]
set -euo pipefail
cd "$(dirname "$0")/../.."
GPT=${GPT:-bin/gpt}
STEPS=${STEPS:-20}
FLAGS=${FLAGS:--model 124m -type bfloat16 -batch 8 -parts 16}
[ -x "$GPT" ] || go build -o "$GPT" ./examples/gpt
devices=${DEVICES:-$(nvidia-smi -L | wc -l)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

printf '%-24s %12s %12s %14s  %s\n' run loss tokens/s reserved 'waits by stage'
try() { # name, then flags
	local name=$1
	shift
	# shellcheck disable=SC2086 # FLAGS are several words
	if ! timeout "${TIMEOUT:-120}" "$GPT" $FLAGS -steps "$STEPS" -every $((STEPS / 2)) -sample 0 "$@" >"$log" 2>&1; then
		printf '%-24s failed: %s\n' "$name" "$(tail -n 1 "$log")"
		return
	fi
	awk -v name="$name" '
		/^step / { loss = $4; rate = $5; held = $7 " " $8; waits = "" }
		/^  stage / { waits = waits " " $(NF-1) "%" }
		END { sub(",", "", loss); printf "%-24s %12s %12s %14s %s\n", name, loss, rate, held, waits }' "$log"
}

try 'one stream'
for stages in 1 2 4; do
	try "$stages stages, 1 GPU" -stages "$stages"
done
[ "$devices" -lt 2 ] || try '2 stages, 2 GPUs' -devices 0,1
[ "$devices" -lt 2 ] || try '4 stages, 2 GPUs' -devices 0,1 -stages 4
[ "$devices" -lt 4 ] || try '4 stages, 4 GPUs' -devices 0,1,2,3
[ "$devices" -lt 2 ] || try '2 copies, 2 GPUs' -devices 0,1 -copies 2
[ "$devices" -lt 4 ] || try '2 copies of 2, 4 GPUs' -devices 0,1,2,3 -copies 2
[ "$devices" -lt 4 ] || try '4 copies, 4 GPUs' -devices 0,1,2,3 -copies 4
