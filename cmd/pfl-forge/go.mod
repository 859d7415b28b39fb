module github.com/pfl-forge/pfl-forge/cmd/pfl-forge

go 1.26

require (
	github.com/pfl-forge/pfl-forge v0.0.0
	github.com/pfl-forge/pfl-forge/services/runner v0.0.0
	github.com/pfl-forge/pfl-forge/services/analyzer v0.0.0
	github.com/pfl-forge/pfl-forge/services/implementer v0.0.0
	github.com/pfl-forge/pfl-forge/services/reviewer v0.0.0
	github.com/pfl-forge/pfl-forge/services/reflector v0.0.0
)

replace (
	github.com/pfl-forge/pfl-forge => ../..
	github.com/pfl-forge/pfl-forge/services/runner => ../../services/runner
	github.com/pfl-forge/pfl-forge/services/analyzer => ../../services/analyzer
	github.com/pfl-forge/pfl-forge/services/implementer => ../../services/implementer
	github.com/pfl-forge/pfl-forge/services/reviewer => ../../services/reviewer
	github.com/pfl-forge/pfl-forge/services/reflector => ../../services/reflector
)
