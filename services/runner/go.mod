module github.com/pfl-forge/pfl-forge/services/runner

go 1.26

require github.com/pfl-forge/pfl-forge v0.0.0

replace github.com/pfl-forge/pfl-forge => ../..
