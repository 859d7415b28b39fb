package config

import "github.com/pfl-forge/pfl-forge/internal/strictyaml"

// Parse reads the content of a pfl-forge.yaml. Keys that it does not give have the value of
// [Default]. The error is a strictyaml.Errors with everything that is wrong; it prints one
// line for each, as "pfl-forge.yaml:line: field: reason".
func Parse(data []byte) (*Project, error) {
	p := Default()
	pos, err := strictyaml.Decode(data, p, strictyaml.Options{File: FileName})
	if err != nil {
		return nil, err
	}
	c := checker{pos: pos}
	c.project(p)
	if len(c.errs) > 0 {
		c.errs.Sort()
		return nil, c.errs
	}
	return p, nil
}
