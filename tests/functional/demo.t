#!/bin/sh
# The demonstration of quickstart, which fails by itself when what it shows is not so.
top=${srcdir:-$(dirname "$0")/../..}
echo 1..3
said() { # NUMBER STATUS WHAT
    if [ "$2" = 0 ]; then echo "ok $1 - $3"; else echo "not ok $1 - $3"; fi
}
output=$(/usr/bin/python3 -B "$top/doc/examples/demo/demo" "$DURWARD" 2>&1 </dev/null)
said 1 $? "the demonstration shows what it claims"
section=$(printf '%s\n' "$output" | sed -n 's/.*Next: README.md, "\(.*\)"\./\1/p')
[ -n "$section" ] && grep -qx "## $section" "$top/README.md"
said 2 $? "its last hint names a section that README has"
printf '%s\n' "$output" | grep -q '2 denied: api.github.com' && ! printf '%s\n' "$output" | grep -q '/durward-demo-'
said 3 $? "and nothing names a folder that goes with it"
printf '%s\n' "$output" | sed 's/^/# /'
