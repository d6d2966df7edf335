// gRPC in Go: the same calls as inside/grpc_client.py. Arguments: HOST, or HOST:PORT in clear, or HOST unary
// MARK for one call alone. Prints one JSON line.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// raw carries bytes as they are: no generated code is needed.
type raw struct{}

func (raw) Name() string                          { return "proto" }
func (raw) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

const service = "/durward.test.Door/"

var (
	out   = map[string]interface{}{}
	conn  *grpc.ClientConn
	block = func() []byte {
		b := make([]byte, 256*1024)
		for i := range b {
			b[i] = byte(i)
		}
		return b
	}()
)

func check(err error) {
	if err != nil {
		out["trouble"] = err.Error()
		line, _ := json.Marshal(out)
		fmt.Println(string(line))
		os.Exit(1)
	}
}

func within(d time.Duration) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), d)
	time.AfterFunc(d+time.Minute, stop) // the deadline itself is what ends it
	return ctx
}

func unary(ctx context.Context, method string, in []byte, more ...grpc.CallOption) ([]byte, error) {
	var got []byte
	err := conn.Invoke(ctx, method, &in, &got, more...)
	return got, err
}

func open(ctx context.Context, method string, up, down bool) grpc.ClientStream {
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: up, ServerStreams: down}, service+method)
	check(err)
	return s
}

func ask(s grpc.ClientStream, in []byte) {
	check(s.SendMsg(&in))
}

func calls() {
	var head, tail metadata.MD
	ctx := metadata.AppendToOutgoingContext(within(20*time.Second), "x-mark", "one", "x-mark-bin", "\x00\xfe")
	got, err := unary(ctx, service+"Unary", []byte("hello"), grpc.Header(&head), grpc.Trailer(&tail))
	check(err)
	out["unary"] = string(got)
	out["first"], out["last"] = strings.Join(head["x-first"], ","), strings.Join(tail["x-last"], ",")
	out["binary"] = hex.EncodeToString([]byte(strings.Join(tail["x-last-bin"], "")))
	got, err = unary(within(20*time.Second), service+"Unary", nil)
	check(err)
	out["empty"] = len(got) == 0
	big := bytes.Repeat(block, 32)
	got, err = unary(within(20*time.Second), service+"Unary", big)
	check(err)
	out["big"] = bytes.Equal(got, big)
}

func streams() {
	var got []byte
	var times []time.Time
	good := 0
	s := open(within(20*time.Second), "Server", false, true)
	ask(s, []byte("20"))
	check(s.CloseSend())
	for s.RecvMsg(&got) == nil {
		if string(got) == fmt.Sprintf("message %d", good) {
			good++
		}
		times = append(times, time.Now())
	}
	out["server"], out["spread"] = good, times[len(times)-1].Sub(times[0]).Seconds()
	s = open(within(20*time.Second), "Client", true, false)
	sum := sha256.New()
	for i := 0; i < 40; i++ {
		ask(s, block)
		sum.Write(block)
	}
	check(s.CloseSend())
	check(s.RecvMsg(&got))
	out["client"] = string(got) == fmt.Sprintf("40 %d %x", 40*len(block), sum.Sum(nil))
	s = open(within(20*time.Second), "Bidi", true, true)
	good = 0
	for i := 0; i < 50; i++ {
		ask(s, []byte(fmt.Sprintf("ask %d", i)))
		check(s.RecvMsg(&got))
		if string(got) == fmt.Sprintf("ask %d", i) {
			good++
		}
	}
	check(s.CloseSend())
	if s.RecvMsg(&got) != io.EOF {
		good = -1
	}
	out["bidi"] = good
}

func ends() {
	var got []byte
	var tail metadata.MD
	_, err := unary(within(20*time.Second), service+"Fail", []byte("x"), grpc.Trailer(&tail))
	st := status.Convert(err)
	out["fail"] = []string{name(err), st.Message(), strings.Join(tail["x-last"], ",")}
	began := time.Now()
	s := open(within(700*time.Millisecond), "Wait", false, true)
	ask(s, nil)
	check(s.CloseSend())
	check(s.RecvMsg(&got))
	out["deadline"] = []interface{}{name(s.RecvMsg(&got)), time.Since(began) < 3*time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	s = open(ctx, "Wait", false, true)
	ask(s, nil)
	check(s.CloseSend())
	check(s.RecvMsg(&got))
	out["cancel"] = string(got)
	cancel()
	out["cancelled"] = name(s.RecvMsg(&got))
}

// name is the code as grpcio writes it.
func name(err error) string {
	var b strings.Builder
	for i, r := range status.Code(err).String() {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	s := strings.ToUpper(b.String())
	if s == "CANCELED" {
		return "CANCELLED"
	}
	return s
}

func many() {
	var lock sync.Mutex
	var all sync.WaitGroup
	good := 0
	for i := 0; i < 200; i++ {
		all.Add(1)
		go func(text string) {
			defer all.Done()
			got, err := unary(within(20*time.Second), service+"Unary", []byte(text))
			lock.Lock()
			defer lock.Unlock()
			if err == nil && string(got) == text {
				good++
			}
		}(fmt.Sprint(i))
	}
	all.Wait()
	out["many"] = good
}

func one(mark string) {
	ctx := metadata.AppendToOutgoingContext(within(20*time.Second), "x-mark", mark)
	got, err := unary(ctx, service+"Unary", []byte("octo"))
	check(err)
	out["unary"] = string(got)
	line, _ := json.Marshal(out)
	fmt.Println(string(line))
}

func main() {
	host := os.Args[1]
	var err error
	way, at := credentials.NewTLS(&tls.Config{}), host+":443"
	if strings.Contains(host, ":") {
		way, at = insecure.NewCredentials(), host
	}
	conn, err = grpc.Dial(at, grpc.WithTransportCredentials(way),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(64<<20)))
	check(err)
	if len(os.Args) > 3 {
		one(os.Args[3])
		return
	}
	calls()
	streams()
	ends()
	ctx := within(20 * time.Second)
	if token := os.Getenv("OPENAI_API_KEY"); token != "" && strings.Contains(host, "keyed") {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	got, err := unary(ctx, service+"Reflect", nil)
	check(err)
	out["reflect"] = string(got)
	many()
	_, err = unary(within(20*time.Second), "/durward.test.Closed/Unary", nil)
	out["denied"] = name(err)
	line, _ := json.Marshal(out)
	fmt.Println(string(line))
}
