// Drivers for Go as programs use them. Arguments: postgres, mysql or redis, and the host. Says a line for each that works.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/lib/pq"
	"github.com/redis/go-redis/v9"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func pgxTest(host string) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, "postgres://x:placeholder@"+host+"/orders")
	must(err)
	var s string
	must(c.QueryRow(ctx, "SELECT a FROM t WHERE id = $1", 3).Scan(&s))
	b := &pgx.Batch{}
	for i := 0; i < 20; i++ {
		b.Queue("SELECT $1::int", i)
	}
	r := c.SendBatch(ctx, b)
	for i := 0; i < 20; i++ {
		var n int
		must(r.QueryRow().Scan(&n))
		if n != i {
			panic("batch")
		}
	}
	must(r.Close())
	_, err = c.Exec(ctx, "CREATE TEMP TABLE mine (id int, a text)")
	must(err)
	n, err := c.CopyFrom(ctx, pgx.Identifier{"mine"}, []string{"id", "a"}, pgx.CopyFromRows([][]any{{1, "é"}, {2, "x"}}))
	must(err)
	if n != 2 {
		panic("copy")
	}
	_, err = c.Exec(ctx, "LISTEN news")
	must(err)
	_, err = c.Exec(ctx, "NOTIFY news, 'hello'")
	must(err)
	w, err := c.WaitForNotification(ctx)
	must(err)
	if w.PID != c.PgConn().PID() {
		panic("pid")
	}
	_, err = c.Exec(ctx, "DO 'BEGIN END'")
	if pe, ok := err.(*pgconn.PgError); !ok || pe.Code != "42501" {
		panic(err)
	}
	slow, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	_, err = c.Exec(slow, "SELECT pg_sleep(20)")
	cancel()
	if err == nil {
		panic("not cancelled")
	}
	fmt.Println("pgx")
}

func sqlTest(driver, dsn, q string, arg int, refused string) {
	db, err := sql.Open(driver, dsn)
	must(err)
	var s string
	must(db.QueryRow(q, arg).Scan(&s))
	if s != fmt.Sprintf("row %d", arg) {
		panic(s)
	}
	tx, err := db.Begin()
	must(err)
	_, err = tx.Exec("INSERT INTO t VALUES (80000, 'Grüße 💶')")
	must(err)
	must(tx.Rollback())
	_, err = db.Exec(refused)
	if err == nil || !strings.Contains(err.Error(), "durward: refused") {
		panic(fmt.Sprint("not refused: ", err))
	}
	must(db.Ping())
	must(db.Close())
	fmt.Println("database/sql with " + driver)
}

func redisTest(host string) {
	ctx := context.Background()
	for p := 2; p <= 3; p++ {
		c := redis.NewClient(&redis.Options{Addr: host + ":6379", Username: "u", Password: "placeholder", Protocol: p})
		must(c.Set(ctx, "js", "v", 0).Err())
		if c.Get(ctx, "js").Val() != "v" {
			panic("get")
		}
		s := c.Subscribe(ctx, "js:c")
		_, err := s.Receive(ctx)
		must(err)
		must(c.Publish(ctx, "js:c", "hello").Err())
		if (<-s.Channel()).Payload != "hello" {
			panic("sub")
		}
		_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, "js:n"); p.Del(ctx, "js:n"); return nil })
		must(err)
		must(c.Close())
	}
	fmt.Println("go-redis")
}

func main() {
	host := os.Args[2]
	switch os.Args[1] {
	case "postgres":
		pgxTest(host)
		sqlTest("postgres", "host="+host+" dbname=orders user=x password=placeholder sslmode=require", "SELECT a FROM t WHERE id = $1", 4, "DO 'BEGIN END'")
	case "mysql":
		sqlTest("mysql", "x:placeholder@tcp("+host+":3306)/orders", "SELECT a FROM t WHERE id = ?", 4, "SHOW GRANTS")
		sqlTest("mysql", "x:placeholder@tcp("+host+":3306)/orders?interpolateParams=true&tls=true&charset=utf8mb4", "SELECT a FROM t WHERE id = ?", 5, "SELECT * FROM other.secret")
	case "redis":
		redisTest(host)
	}
}
