// A client of golang.org/x/crypto/ssh and github.com/pkg/sftp as programs use them. Its environment says where: SSH_HOST,
// SSH_PORT, SSH_USER, SSH_KEY (a file, or nothing), SSH_KNOWN (known hosts), SSH_READ and SSH_UP (folders there),
// SSH_REFUSED (whether a command of no rule is refused). Says "ok".
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

func must(err error, what string) {
	if err != nil {
		log.Fatalf("%s: %v", what, err)
	}
}

func check(good bool, what string, got ...any) {
	if !good {
		log.Fatalf("%s: %v", what, got)
	}
}

func dial() *ssh.Client {
	known, err := knownhosts.New(os.Getenv("SSH_KNOWN"))
	must(err, "known hosts")
	config := &ssh.ClientConfig{User: os.Getenv("SSH_USER"), HostKeyCallback: known, Timeout: 15 * time.Second}
	if file := os.Getenv("SSH_KEY"); file != "" {
		text, err := os.ReadFile(file)
		must(err, "key")
		key, err := ssh.ParsePrivateKey(text)
		must(err, "key")
		config.Auth = []ssh.AuthMethod{ssh.PublicKeys(key)}
	}
	client, err := ssh.Dial("tcp", os.Getenv("SSH_HOST")+":"+os.Getenv("SSH_PORT"), config)
	must(err, "dial")
	return client
}

func status(client *ssh.Client, command string) int {
	session, err := client.NewSession()
	must(err, "session")
	defer session.Close()
	var ended *ssh.ExitError
	err = session.Run(command)
	if errors.As(err, &ended) {
		return ended.ExitStatus()
	}
	must(err, command)
	return 0
}

func commands(client *ssh.Client) {
	session, err := client.NewSession()
	must(err, "session")
	out, err := session.Output("echo hello world")
	must(err, "echo")
	check(string(out) == "hello world\n", "echo", string(out))
	check(status(client, "exit 7") == 7, "exit status")
	session, err = client.NewSession()
	must(err, "session")
	session.Stdin = bytes.NewReader(make([]byte, 3000000))
	out, err = session.Output("wc -c")
	must(err, "wc")
	check(string(bytes.TrimSpace(out)) == "3000000", "standard input", string(out))
	session, err = client.NewSession()
	must(err, "session")
	out, err = session.Output("head -c 3000000 /dev/zero")
	must(err, "head")
	check(len(out) == 3000000, "standard output", len(out))
	_, _, err = client.SendRequest("keepalive@openssh.com", true, nil)
	must(err, "keepalive")
	if os.Getenv("SSH_REFUSED") == "1" {
		check(status(client, "id") == 128, "a command of no rule")
	}
}

func files(client *ssh.Client) {
	f, err := sftp.NewClient(client)
	must(err, "sftp")
	defer f.Close()
	data := bytes.Repeat([]byte("0123456789abcdef"), 100000)
	at := os.Getenv("SSH_UP") + "/go"
	to, err := f.Create(at)
	must(err, "create")
	_, err = to.ReadFrom(bytes.NewReader(data))
	must(err, "write")
	must(to.Close(), "close")
	from, err := f.Open(at)
	must(err, "open")
	got, err := io.ReadAll(from)
	must(err, "read")
	must(from.Close(), "close")
	check(bytes.Equal(got, data), "what was written is read")
	list, err := f.ReadDir(os.Getenv("SSH_READ"))
	must(err, "list")
	check(len(list) > 0, "list")
	must(f.Rename(at, at+"2"), "rename")
	must(f.Remove(at+"2"), "remove")
}

func main() {
	client := dial()
	commands(client)
	files(client)
	must(client.Close(), "close")
	fmt.Println("ok")
}
