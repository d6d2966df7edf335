// A vendor's own library for Go, as its documents begin: library API PACKAGE TURNS KEY. As library.py: one client makes
// TURNS turns, each answer is looked at. Prints {"turns": N, "version": ...} as JSON.
// models.go, clouds.go and work.go have what is called once a turn.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const text = "The door is kept."

var ctx = context.Background()

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func same(got, want string) {
	if got != want {
		must(fmt.Errorf("%q instead of %q", got, want))
	}
}

func main() {
	apis := map[string]func(string) func(int){
		"openai": useOpenai, "anthropic": useAnthropic, "genai": useGenai, "cohere": useCohere, "ai-openai": useGoOpenai,
		"s3": useS3, "sts": useSts, "bedrock": useBedrock, "minio": useMinio, "azure-identity": useAzureIdentity,
		"digitalocean": useDigitalocean, "vault": useVault, "influxdb": useInflux,
		"github": useGithub, "gitlab": useGitlab, "rollbar-go": useRollbar, "stripe": useStripe,
		"sentry-public": useSentry, "slack-go": useSlack, "telegram": useTelegram, "discord": useDiscord,
	}
	turns, err := strconv.Atoi(os.Args[3])
	must(err)
	turn := apis[os.Args[1]](os.Args[4])
	for n := 1; n <= turns; n++ {
		turn(n)
	}
	version := "?"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == os.Args[2] {
				version = strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{"turns": turns, "version": version}))
}
