//go:build tools

// What containers.t has of BuildKit; `go mod tidy` keeps what it needs.
package tools

import (
	_ "github.com/moby/buildkit/cmd/buildctl"
	_ "github.com/moby/buildkit/cmd/buildkitd"
)
