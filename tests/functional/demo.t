#!/bin/sh
# The demonstration of quickstart, which fails by itself when what it shows is not so.
top=${srcdir:-$(dirname "$0")/../..}
echo 1..1
if output=$(/usr/bin/python3 -B "$top/doc/examples/demo/demo" "$DURWARD" 2>&1 </dev/null); then
    echo "ok 1 - the demonstration shows what it claims"
else
    echo "not ok 1 - the demonstration shows what it claims"
fi
printf '%s\n' "$output" | sed 's/^/# /'
