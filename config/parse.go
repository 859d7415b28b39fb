package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

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

// Load reads the pfl-forge.yaml in the directory root, or returns [Default] if there is
// none. It refuses anything but a regular file, such as a link that leads elsewhere, and a
// file that is too large. Other errors are those of [Parse].
func Load(root string) (*Project, error) {
	path := filepath.Join(root, FileName)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Default(), nil
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", FileName, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", FileName)
	case info.Size() > strictyaml.DefaultMaxBytes:
		return nil, fmt.Errorf("%s is %d bytes long; at most %d are allowed", FileName, info.Size(), strictyaml.DefaultMaxBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", FileName, err)
	}
	return Parse(data)
}
