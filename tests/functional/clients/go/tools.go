//go:build tools

// What is built from here beside our own clients.
package clients

import (
	_ "github.com/genuinetools/amicontained"
	_ "github.com/summerwind/h2spec/cmd/h2spec"
)
