// Testcontainers' example for Go: Redis and PostgreSQL, as tests/functional/inside/containers.py.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"

	_ "github.com/lib/pq"
	"github.com/redis/go-redis/v9"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/exec"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
	tcredis "github.com/testcontainers/testcontainers-go/modules/redis"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func redisAnswers(ctx context.Context) {
	c, err := tcredis.Run(ctx, "localhost/redis:1")
	must(err)
	defer func() { must(testcontainers.TerminateContainer(c)) }()
	url, err := c.ConnectionString(ctx)
	must(err)
	options, err := redis.ParseURL(url)
	must(err)
	client := redis.NewClient(options)
	defer client.Close()
	must(client.Set(ctx, "key", "value", 0).Err())
	said, err := client.Get(ctx, "key").Result()
	must(err)
	fmt.Println("redis", said)
}

func main() {
	ctx := context.Background()
	redisAnswers(ctx)
	c, err := postgres.Run(ctx, "localhost/postgres:1", postgres.BasicWaitStrategies())
	must(err)
	defer func() { must(testcontainers.TerminateContainer(c)) }()
	url, err := c.ConnectionString(ctx, "sslmode=disable")
	must(err)
	db, err := sql.Open("postgres", url)
	must(err)
	defer db.Close()
	var version string
	must(db.QueryRow("select version()").Scan(&version))
	fmt.Println("postgres", version)
	for _, u := range []string{"https://deps.example.com/go", "https://evil.example.com/"} {
		code, out, err := c.Exec(ctx, []string{"curl", "-sS", "-m", "5", u}, exec.Multiplexed())
		must(err)
		said, err := io.ReadAll(out)
		must(err)
		fmt.Println(code, string(said))
	}
}
