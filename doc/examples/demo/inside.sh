# What runs in the sandbox. It says what it has and what it got; it tries what it should not.
echo "GITHUB_TOKEN=$GITHUB_TOKEN"
echo "request=$(curl -sS -o /tmp/answer -w '%{http_code}' -H "Authorization: Bearer $GITHUB_TOKEN" https://api.github.com/user)"
echo "answer=$(cat /tmp/answer)"
echo "write=$(curl -sS -o /tmp/write -w '%{http_code}' -X POST -d '{}' https://api.github.com/gists)"
echo "refusal=$(cat /tmp/write)"
curl -sS -m 10 https://paste.example.net/ >/dev/null 2>&1
echo "elsewhere=$?"
echo "interfaces=$(ls /sys/class/net 2>/dev/null || sed -n '3,$s/:.*//p' /proc/net/dev | tr -d ' ' | tr '\n' ' ')"
