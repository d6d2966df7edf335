// What Go's own encoders and templates make of a text: lines of JSON, [name, text].
package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	html_template "html/template"
	"net/url"
	"os"
	"strings"
	"text/template"
)

func say(name, text string) {
	line, _ := json.Marshal([]string{"Go: " + name, text})
	fmt.Println(string(line))
}

func page(name, text, value string) {
	var b strings.Builder
	if err := html_template.Must(html_template.New("page").Parse(text)).Execute(&b, value); err != nil {
		panic(err)
	}
	say(name, b.String())
}

func main() {
	value := os.Args[1]
	coded, _ := json.Marshal(value)
	say("encoding/json", string(coded))
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(value)); err != nil {
		panic(err)
	}
	say("encoding/xml", b.String())
	say("html.EscapeString", html.EscapeString(value))
	say("url.QueryEscape", url.QueryEscape(value))
	say("url.PathEscape", url.PathEscape(value))
	say("a query in a query", "/login?next="+url.QueryEscape("/x?key="+url.QueryEscape(value)))
	in := url.URL{Scheme: "https", Host: "h", Path: "/" + value}
	say("url.URL's path", in.String())
	in = url.URL{Scheme: "https", Host: "h", User: url.UserPassword("u", value)}
	say("url.URL's password", in.String())
	say("template.HTMLEscapeString", template.HTMLEscapeString(value))
	say("template.JSEscapeString", template.JSEscapeString(value))
	page("html/template, a text", "<p>{{.}}</p>", value)
	page("html/template, a value", "<p a=\"{{.}}\">", value)
	page("html/template, a value without quotes", "<p a={{.}}>", value)
	page("html/template, a script", "<script>var a={{.}};</script>", value)
	page("html/template, a string in a script", "<script>var a='{{.}}';</script>", value)
	page("html/template, a query", "<a href=\"/x?a={{.}}\">", value)
}
