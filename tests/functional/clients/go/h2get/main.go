// Go's own HTTP client against the gate: many requests at once, an upload, a denied path. Arguments:
// BASE DENIED_URL. Prints one JSON line.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

type result struct {
	Good    int    `json:"good"`
	Proto   string `json:"proto"`
	Denied  string `json:"denied"`
	Length  int    `json:"length"`
	Trouble string `json:"trouble"`
}

func main() {
	base, denied := os.Args[1], os.Args[2]
	var out result
	var lock sync.Mutex
	var all sync.WaitGroup
	fail := func(err error) {
		lock.Lock()
		out.Trouble = err.Error()
		lock.Unlock()
	}
	for i := 0; i < 80; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			r, err := http.Get(fmt.Sprintf("%s/go/%d", base, i))
			if err != nil {
				fail(err)
				return
			}
			defer r.Body.Close()
			var said struct{ Target string }
			if json.NewDecoder(r.Body).Decode(&said) == nil && said.Target == fmt.Sprintf("/go/%d", i) {
				lock.Lock()
				out.Good++
				out.Proto = r.Proto
				lock.Unlock()
			}
		}(i)
	}
	all.Wait()
	// a reader of unknown length: no content-length is sent
	body := io.MultiReader(bytes.NewReader(make([]byte, 3<<20)))
	if r, err := http.Post(base+"/go/up", "application/octet-stream", body); err != nil {
		fail(err)
	} else {
		var said struct{ Length int }
		if err := json.NewDecoder(r.Body).Decode(&said); err != nil {
			fail(err)
		}
		r.Body.Close()
		out.Length = said.Length
	}
	if r, err := http.Get(denied); err != nil {
		fail(err)
	} else {
		out.Denied = fmt.Sprintf("%d %s", r.StatusCode, r.Proto)
		r.Body.Close()
	}
	line, _ := json.Marshal(out)
	fmt.Println(string(line))
}
