// Go's own HTTP client in the matrix: as inside/matrix.py. Argument: MARK.
package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	mark, out := os.Args[1], map[string][]interface{}{}
	one := http.DefaultTransport.(*http.Transport).Clone()
	one.ForceAttemptHTTP2, one.TLSClientConfig = false, &tls.Config{NextProtos: []string{"http/1.1"}}
	one.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	for column, client := range map[string]*http.Client{"h1": {Transport: one}, "h2": http.DefaultClient} {
		r, err := client.Get(fmt.Sprintf("https://%s.example.com/who?cell=%s-%s", column, mark, column))
		check(err)
		var who struct{ Login string }
		check(json.NewDecoder(r.Body).Decode(&who))
		r.Body.Close()
		out[column] = []interface{}{r.Proto, who.Login, 0}
	}
	r, err := http.Post("https://stream.example.com/v1/chat/completions?cell="+mark+"-sse", "application/json",
		strings.NewReader(`{"model":"m","stream":true}`))
	check(err)
	var times []time.Time
	words := ""
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		var e struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		text := strings.TrimPrefix(lines.Text(), "data: ")
		if text != lines.Text() && json.Unmarshal([]byte(text), &e) == nil {
			times = append(times, time.Now())
			words += e.Choices[0].Delta.Content
		}
	}
	out["sse"] = []interface{}{"", words, times[len(times)-1].Sub(times[0]).Seconds()}
	line, _ := json.Marshal(out)
	fmt.Println(string(line))
}
