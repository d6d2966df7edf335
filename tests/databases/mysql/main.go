// Command mysql-server is a MySQL server in memory for mysql.t. Its one user logs in by caching_sha2_password, in TLS: at first
// with the password itself (full), then by a proof of what the server has kept (fast), as MySQL has it.
// argv: address, certificate, key, user, password. Says "ready", and of each login "full" or "fast".
package main

import (
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net"
	"os"
	"sync"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
)

type account struct {
	user, password string
	mu             sync.Mutex
	kept           bool
	methods        []mysql.AuthMethod
}

func (a *account) HandleUser(user string, _ net.Addr) bool { return user == a.user }

func (a *account) AuthMethods() []mysql.AuthMethod { return a.methods }

func (a *account) DefaultAuthMethodDescription() mysql.AuthMethodDescription {
	return mysql.CachingSha2Password
}

func (a *account) denied(user string) error {
	return mysql.NewSQLError(mysql.ERAccessDeniedError, mysql.SSAccessDeniedError, "Access denied for user '%v'", user)
}

func (a *account) login(how string, good bool, user string) (mysql.Getter, error) {
	if !good || user != a.user {
		return nil, a.denied(user)
	}
	fmt.Println(how)
	return sql.MysqlConnectionUser{User: user, Host: "%"}, nil
}

func (a *account) UserEntryWithCacheHash(_ []*x509.Certificate, salt []byte, user string, answer []byte, _ net.Addr) (mysql.Getter, mysql.CacheState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.kept {
		return nil, mysql.AuthNeedMoreData, nil
	}
	wanted := mysql.ScrambleCachingSha2Password(salt, []byte(a.password))
	getter, err := a.login("fast", subtle.ConstantTimeCompare(answer, wanted) == 1, user)
	if err != nil {
		return nil, mysql.AuthRejected, err
	}
	return getter, mysql.AuthAccepted, nil
}

func (a *account) UserEntryWithPassword(_ []*x509.Certificate, user string, password string, _ net.Addr) (mysql.Getter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	getter, err := a.login("full", password == a.password, user)
	a.kept = a.kept || err == nil
	return getter, err
}

func main() {
	pair, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	provider := memory.NewDBProvider(memory.NewDatabase("orders"))
	a := &account{user: os.Args[4], password: os.Args[5]}
	a.methods = []mysql.AuthMethod{mysql.NewSha2CachingAuthMethod(a, a, a)}
	config := server.Config{
		Protocol:               "tcp",
		Address:                os.Args[1],
		TLSConfig:              &tls.Config{Certificates: []tls.Certificate{pair}},
		RequireSecureTransport: true,
		ProtocolListenerFactory: func(c server.Config, l mysql.ListenerConfig, events server.ServerEventListener) (server.ProtocolListener, error) {
			l.AuthServer = a
			return server.MySQLProtocolListenerFactory(c, l, events)
		},
	}
	s, err := server.NewServer(config, sqle.NewDefault(provider), sql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	log.Fatal(s.Start())
}
