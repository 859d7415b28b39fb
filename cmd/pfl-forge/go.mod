module github.com/pfl-forge/pfl-forge/cmd/pfl-forge

go 1.26.0

require (
	github.com/creack/pty v1.1.24
	github.com/google/go-cmp v0.7.0
	github.com/hinshun/vt10x v0.0.0-20220301184237-5011da428d02
	github.com/mattn/go-runewidth v0.0.24
	github.com/nats-io/nats.go v1.55.0
	github.com/nats-io/nuid v1.0.1
	github.com/pfl-forge/pfl-forge v0.0.0
	github.com/pfl-forge/pfl-forge/services/analyzer v0.0.0
	github.com/pfl-forge/pfl-forge/services/implementer v0.0.0
	github.com/pfl-forge/pfl-forge/services/reflector v0.0.0
	github.com/pfl-forge/pfl-forge/services/reviewer v0.0.0
	github.com/pfl-forge/pfl-forge/services/runner v0.0.0
	github.com/rogpeppe/go-internal v1.16.0
	github.com/spf13/cobra v1.10.2
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.24.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
)

require (
	github.com/antithesishq/antithesis-sdk-go v0.8.0-default-no-op // indirect
	github.com/clipperhouse/uax29/v2 v2.2.0 // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/hashicorp/yamux v0.1.2 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/mozillazg/go-unidecode v0.2.0 // indirect
	github.com/nats-io/jwt/v2 v2.8.2 // indirect
	github.com/nats-io/nats-server/v2 v2.15.2 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	golang.org/x/tools v0.51.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace (
	github.com/pfl-forge/pfl-forge => ../..
	github.com/pfl-forge/pfl-forge/services/analyzer => ../../services/analyzer
	github.com/pfl-forge/pfl-forge/services/implementer => ../../services/implementer
	github.com/pfl-forge/pfl-forge/services/reflector => ../../services/reflector
	github.com/pfl-forge/pfl-forge/services/reviewer => ../../services/reviewer
	github.com/pfl-forge/pfl-forge/services/runner => ../../services/runner
)
