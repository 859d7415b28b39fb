module github.com/pfl-forge/pfl-forge/cmd/pfl-forge

go 1.26.0

require (
	github.com/pfl-forge/pfl-forge v0.0.0
	github.com/pfl-forge/pfl-forge/services/analyzer v0.0.0
	github.com/pfl-forge/pfl-forge/services/implementer v0.0.0
	github.com/pfl-forge/pfl-forge/services/reflector v0.0.0
	github.com/pfl-forge/pfl-forge/services/reviewer v0.0.0
	github.com/pfl-forge/pfl-forge/services/runner v0.0.0
)

require (
	github.com/clipperhouse/uax29/v2 v2.2.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/mattn/go-runewidth v0.0.24 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.47.0 // indirect
)

replace (
	github.com/pfl-forge/pfl-forge => ../..
	github.com/pfl-forge/pfl-forge/services/analyzer => ../../services/analyzer
	github.com/pfl-forge/pfl-forge/services/implementer => ../../services/implementer
	github.com/pfl-forge/pfl-forge/services/reflector => ../../services/reflector
	github.com/pfl-forge/pfl-forge/services/reviewer => ../../services/reviewer
	github.com/pfl-forge/pfl-forge/services/runner => ../../services/runner
)
