package main

// Code, money, messages.

import (
	"fmt"
	"strings"

	"github.com/bwmarrin/discordgo"
	"github.com/getsentry/sentry-go"
	telegram "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	"github.com/google/go-github/v74/github"
	"github.com/rollbar/rollbar-go"
	"github.com/slack-go/slack"
	"github.com/stripe/stripe-go/v82"
	stripeclient "github.com/stripe/stripe-go/v82/client"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

func useGithub(key string) func(int) {
	c := github.NewClient(nil).WithAuthToken(key)
	return func(int) {
		user, _, err := c.Users.Get(ctx, "")
		must(err)
		same(user.GetBio(), text)
		issue, _, err := c.Issues.Get(ctx, "acme", "door", 7)
		must(err)
		same(issue.GetTitle(), text)
		title := "hinge"
		made, _, err := c.Issues.Create(ctx, "acme", "door", &github.IssueRequest{Title: &title})
		must(err)
		same(fmt.Sprint(made.GetNumber()), "8")
	}
}

func useGitlab(key string) func(int) {
	c, err := gitlab.NewClient(key)
	must(err)
	return func(int) {
		project, _, err := c.Projects.GetProject(1, nil)
		must(err)
		same(project.Description, text)
	}
}

func useRollbar(key string) func(int) {
	c := rollbar.NewSync(key, "production", "1", "host", "/")
	return func(n int) {
		c.MessageWithExtras(rollbar.INFO, fmt.Sprint("door ", n), nil)
		c.Wait()
	}
}

func useStripe(key string) func(int) {
	c := &stripeclient.API{}
	c.Init(key, nil)
	return func(int) {
		made, err := c.Customers.New(&stripe.CustomerParams{Name: stripe.String("Ann"), Email: stripe.String("ann@acme.example")})
		must(err)
		same(made.Name, text)
		got, err := c.Customers.Get("cus_1", nil)
		must(err)
		same(got.Name, text)
	}
}

func useSentry(key string) func(int) {
	must(sentry.Init(sentry.ClientOptions{Dsn: "https://" + key + "@o2.ingest.sentry.io/1", Transport: sentry.NewHTTPSyncTransport()}))
	return func(n int) {
		if sentry.CaptureMessage(fmt.Sprint("door ", n)) == nil {
			must(fmt.Errorf("no event"))
		}
	}
}

func useSlack(key string) func(int) {
	c := slack.New(key)
	return func(int) {
		who, err := c.AuthTest()
		must(err)
		same(who.Team, text)
		channel, _, err := c.PostMessage("C1", slack.MsgOptionText("door", false))
		must(err)
		same(channel, "C1")
	}
}

func useTelegram(key string) func(int) {
	c, err := telegram.NewBotAPI(key)
	must(err)
	return func(int) {
		sent, err := c.Send(telegram.NewMessage(1, "door"))
		must(err)
		same(sent.Text, text)
	}
}

func useDiscord(key string) func(int) {
	c, err := discordgo.New("Bot " + key)
	must(err)
	return func(int) {
		user, err := c.User("@me")
		must(err)
		same(strings.TrimSpace(user.Username), text)
	}
}
