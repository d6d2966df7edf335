module durward.test/ssh

go 1.24.0

require (
	github.com/pkg/sftp v1.13.10
	golang.org/x/crypto v0.45.0
)

require (
	github.com/kr/fs v0.1.0 // indirect
	golang.org/x/sys v0.38.0 // indirect
)
