package main

// Clouds and stores.

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/digitalocean/godo"
	vault "github.com/hashicorp/vault/api"
	influxdb "github.com/influxdata/influxdb-client-go/v2"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

func awsKey(key string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: key, SecretAccessKey: "x"}, nil
	})
}

func useS3(key string) func(int) {
	c := s3.New(s3.Options{Region: "eu-west-1", Credentials: awsKey(key)})
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

func useSts(key string) func(int) {
	c := sts.New(sts.Options{Region: "eu-west-1", Credentials: awsKey(key)})
	return func(int) {
		who, err := c.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		must(err)
		same(*who.UserId, text)
	}
}

func useBedrock(key string) func(int) {
	c := bedrockruntime.New(bedrockruntime.Options{Region: "eu-west-1", Credentials: awsKey(key)})
	return func(int) {
		said, err := c.Converse(ctx, &bedrockruntime.ConverseInput{ModelId: aws.String("acme.m"), Messages: []types.Message{{
			Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: question}}}}})
		must(err)
		message := said.Output.(*types.ConverseOutputMemberMessage).Value
		same(message.Content[0].(*types.ContentBlockMemberText).Value, text)
	}
}

func useMinio(key string) func(int) {
	c, err := minio.New("minio.example.com", &minio.Options{Secure: true, Region: "us-east-1",
		Creds: credentials.NewStaticV4(key, "x", "")})
	must(err)
	return func(n int) {
		_, err := c.PutObject(ctx, "acme", "door/"+strconv.Itoa(n), strings.NewReader("shut"), 4, minio.PutObjectOptions{})
		must(err)
		got, err := c.GetObject(ctx, "acme", "door.txt", minio.GetObjectOptions{})
		must(err)
		all, err := io.ReadAll(got)
		must(err)
		same(string(all), text)
	}
}

func useAzureIdentity(key string) func(int) {
	return func(int) {
		c, err := azidentity.NewClientSecretCredential("acme", "door", key, nil)
		must(err)
		got, err := c.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://vault.azure.net/.default"}})
		must(err)
		same(got.Token, "token-of-the-double")
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

func useInflux(key string) func(int) {
	c := influxdb.NewClient("https://influx.example.com", key)
	to := c.WriteAPIBlocking("acme", "doors")
	return func(n int) {
		must(to.WriteRecord(ctx, "door shut="+strconv.Itoa(n)))
	}
}
