// Go's own HTTP client and targets as people write them. Arguments: VERSION (h1, h2) BASE; stdin: a
// JSON list of targets. Prints one JSON list: for each [status, what the origin was asked for].
// VERSION te: with a field that HTTP/2 forbids, which this client sends nevertheless.
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	client, base := http.DefaultClient, os.Args[2]
	if os.Args[1] == "h1" {
		one := http.DefaultTransport.(*http.Transport).Clone()
		one.ForceAttemptHTTP2, one.TLSClientConfig = false, &tls.Config{NextProtos: []string{"http/1.1"}}
		one.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		client = &http.Client{Transport: one}
	}
	client.Timeout = 10 * time.Second // one that it tries again for ever ends by it
	var targets []string
	if err := json.NewDecoder(os.Stdin).Decode(&targets); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out := [][]interface{}{}
	for _, target := range targets {
		q, err := http.NewRequest("GET", base+target, nil)
		if err == nil && os.Args[1] == "te" {
			q.Header.Set("Te", "gzip")
		}
		var r *http.Response
		if err == nil {
			r, err = client.Do(q)
		}
		if err != nil {
			out = append(out, []interface{}{0, err.Error()})
			continue
		}
		var said struct{ Target string }
		err = json.NewDecoder(r.Body).Decode(&said)
		r.Body.Close()
		if err != nil {
			said.Target = r.Header.Get("Durward-Denied")
		}
		out = append(out, []interface{}{r.StatusCode, said.Target})
	}
	line, _ := json.Marshal(out)
	fmt.Println(string(line))
}
