module github.com/pfl-forge/pfl-forge/services/gateway

go 1.26.0

replace github.com/pfl-forge/pfl-forge => ../..
