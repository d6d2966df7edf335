package main

// Models.

import (
	"errors"
	"io"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	cohere "github.com/cohere-ai/cohere-go/v2"
	cohereclient "github.com/cohere-ai/cohere-go/v2/client"
	cohereoption "github.com/cohere-ai/cohere-go/v2/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	goopenai "github.com/sashabaranov/go-openai"
	"google.golang.org/genai"
)

const question = "Is the door kept?"

func useOpenai(key string) func(int) {
	c := openai.NewClient(openaioption.WithAPIKey(key))
	ask := openai.ChatCompletionNewParams{
		Model:    "m",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)},
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

func useGoOpenai(key string) func(int) {
	c := goopenai.NewClient(key)
	ask := goopenai.ChatCompletionRequest{Model: "m", Messages: []goopenai.ChatCompletionMessage{
		{Role: goopenai.ChatMessageRoleUser, Content: question}}}
	return func(int) {
		said, err := c.CreateChatCompletion(ctx, ask)
		must(err)
		same(said.Choices[0].Message.Content, text)
		parts, err := c.CreateChatCompletionStream(ctx, ask)
		must(err)
		defer parts.Close()
		all := ""
		for {
			part, err := parts.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			must(err)
			all += part.Choices[0].Delta.Content
		}
		same(all, text)
	}
}

func useAnthropic(key string) func(int) {
	c := anthropic.NewClient(anthropicoption.WithAPIKey(key))
	return func(int) {
		said, err := c.Messages.New(ctx, anthropic.MessageNewParams{
			Model: "m", MaxTokens: 9,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
		})
		must(err)
		same(said.Content[0].Text, text)
	}
}

func useGenai(key string) func(int) {
	c, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: key, Backend: genai.BackendGeminiAPI})
	must(err)
	return func(int) {
		said, err := c.Models.GenerateContent(ctx, "m", genai.Text(question), nil)
		must(err)
		same(said.Text(), text)
		all := ""
		for part, err := range c.Models.GenerateContentStream(ctx, "m", genai.Text(question), nil) {
			must(err)
			all += part.Text()
		}
		same(all, text)
	}
}

func useCohere(key string) func(int) {
	c := cohereclient.NewClient(cohereoption.WithToken(key))
	return func(int) {
		said, err := c.V2.Chat(ctx, &cohere.V2ChatRequest{Model: "m", Messages: cohere.ChatMessages{{
			Role: "user", User: &cohere.UserMessageV2{Content: &cohere.UserMessageV2Content{String: question}}}}})
		must(err)
		same(said.Message.Content[0].Text.Text, text)
	}
}
