// A vendor's own library for Go, as its documents begin: library API PACKAGE TURNS KEY. As library.py: one client makes
// TURNS turns, each answer is looked at. Prints {"turns": N, "version": ...} as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/digitalocean/godo"
	vault "github.com/hashicorp/vault/api"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
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

func useOpenai(key string) func(int) {
	c := openai.NewClient(openaioption.WithAPIKey(key))
	ask := openai.ChatCompletionNewParams{
		Model:    "m",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Is the door kept?")},
	}
	return func(int) {
		said, err := c.Chat.Completions.New(ctx, ask)
		must(err)
		same(said.Choices[0].Message.Content, text)
		all, parts := "", c.Chat.Completions.NewStreaming(ctx, ask)
		for parts.Next() {
			for _, choice := range parts.Current().Choices {
				all += choice.Delta.Content
			}
		}
		must(parts.Err())
		same(all, text)
	}
}

func useAnthropic(key string) func(int) {
	c := anthropic.NewClient(anthropicoption.WithAPIKey(key))
	return func(int) {
		said, err := c.Messages.New(ctx, anthropic.MessageNewParams{
			Model: "m", MaxTokens: 9,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Is the door kept?"))},
		})
		must(err)
		same(said.Content[0].Text, text)
	}
}

func useS3(key string) func(int) {
	c := s3.New(s3.Options{Region: "eu-west-1", Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: key, SecretAccessKey: "x"}, nil
		})})
	return func(n int) {
		_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("acme"), Key: aws.String("door/" + strconv.Itoa(n)),
			Body: strings.NewReader("shut")})
		must(err)
		got, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("acme"), Key: aws.String("door.txt")})
		must(err)
		all, err := io.ReadAll(got.Body)
		must(err)
		same(string(all), text)
	}
}

func useDigitalocean(key string) func(int) {
	c := godo.NewFromToken(key)
	return func(int) {
		account, _, err := c.Account.Get(ctx)
		must(err)
		same(account.Name, text)
	}
}

func useVault(key string) func(int) {
	how := vault.DefaultConfig()
	how.Address = "https://vault.example.com"
	c, err := vault.NewClient(how)
	must(err)
	c.SetToken(key)
	return func(int) {
		got, err := c.KVv2("secret").Get(ctx, "door")
		must(err)
		same(got.Data["answer"].(string), text)
	}
}

func main() {
	apis := map[string]func(string) func(int){"openai": useOpenai, "anthropic": useAnthropic, "s3": useS3,
		"digitalocean": useDigitalocean, "vault": useVault}
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
