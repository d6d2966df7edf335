// The least an intercepting proxy can be with Go's own net/http: what rivals in Go are built on.
// usage: interceptor PORT CA.pem CA.key ORIGIN-CA.pem VALUE
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

type interceptor struct {
	ca     tls.Certificate
	key    *ecdsa.PrivateKey
	leaves sync.Map
	out    *http.Transport
	value  string
}

func (p *interceptor) leaf(name string) *tls.Certificate {
	if found, ok := p.leaves.Load(name); ok {
		return found.(*tls.Certificate)
	}
	issuer, err := x509.ParseCertificate(p.ca.Certificate[0])
	if err != nil {
		log.Fatal(err)
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	text := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, text, issuer, &p.key.PublicKey, p.ca.PrivateKey)
	if err != nil {
		log.Fatal(err)
	}
	made := &tls.Certificate{Certificate: [][]byte{der, p.ca.Certificate[0]}, PrivateKey: p.key}
	p.leaves.Store(name, made)
	return made
}

func (p *interceptor) exchange(client net.Conn, in *bufio.Reader, authority string) bool {
	request, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	request.URL.Scheme, request.URL.Host, request.RequestURI = "https", authority, ""
	request.Header.Set("Authorization", p.value)
	reply, err := p.out.RoundTrip(request)
	if err != nil {
		io.WriteString(client, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return false
	}
	defer reply.Body.Close()
	return reply.Write(client) == nil && !request.Close
}

func (p *interceptor) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
		return
	}
	raw, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer raw.Close()
	io.WriteString(raw, "HTTP/1.1 200 OK\r\n\r\n")
	name := strings.Split(r.Host, ":")[0]
	client := tls.Server(raw, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return p.leaf(name), nil
	}})
	if client.Handshake() != nil {
		return
	}
	for in := bufio.NewReader(client); p.exchange(client, in, r.Host); {
	}
}

func main() {
	port, value := os.Args[1], os.Args[5]
	ca, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	pem, err := os.ReadFile(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	p := &interceptor{ca: ca, key: key, value: value, out: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
		MaxIdleConnsPerHost: 1024, DisableCompression: true}}
	log.Fatal((&http.Server{Addr: "127.0.0.1:" + port, Handler: http.HandlerFunc(p.serve),
		ErrorLog: log.New(io.Discard, "", 0)}).ListenAndServe())
}
