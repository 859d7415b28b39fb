module github.com/pfl-forge/pfl-forge/services/gateway

go 1.26.0

replace github.com/pfl-forge/pfl-forge => ../..

require (
	github.com/google/go-cmp v0.7.0
	github.com/pfl-forge/pfl-forge v0.0.0
	github.com/yuin/goldmark v1.8.7
	pgregory.net/rapid v1.3.0
)

require (
	golang.org/x/text v0.43.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
