module durward.test/ssh

go 1.24.0

require (
	github.com/pkg/sftp v1.13.10
	golang.org/x/crypto v0.45.0
)

require (
	github.com/avast/retry-go v2.4.2+incompatible // indirect
	github.com/charmbracelet/git-lfs-transfer v0.1.0 // indirect
	github.com/git-lfs/git-lfs/v3 v3.3.0 // indirect
	github.com/git-lfs/gitobj/v2 v2.1.1 // indirect
	github.com/git-lfs/pktline v0.0.0-20210330133718-06e9096e2825 // indirect
	github.com/git-lfs/wildmatch/v2 v2.0.1 // indirect
	github.com/kr/fs v0.1.0 // indirect
	github.com/leonelquinteros/gotext v1.5.0 // indirect
	github.com/pkg/errors v0.0.0-20170505043639-c605e284fe17 // indirect
	github.com/rubyist/tracerx v0.0.0-20170927163412-787959303086 // indirect
	golang.org/x/sys v0.38.0 // indirect
	golang.org/x/text v0.31.0 // indirect
)

tool github.com/charmbracelet/git-lfs-transfer
