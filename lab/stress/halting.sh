#!/usr/bin/env bash
# Runs a test binary, and stops all its threads for 10 to 90 ms at random moments, as a machine does that has more to do than it can. For the
# flag -exec of go test. A process that the test starts is not stopped.
set -uo pipefail

"$@" &
test=$!
trap 'kill -CONT "$test"; kill -TERM "$test"' INT TERM
while sleep "0.0$((RANDOM % 9 + 1))" && kill -STOP "$test" 2>/dev/null; do
	sleep "0.0$((RANDOM % 9 + 1))"
	kill -CONT "$test" 2>/dev/null
done
wait "$test"
