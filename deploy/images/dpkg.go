package main

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// debPackage is an installed package of Debian. source is the name of the source
// package, without a version; it is empty where that is the name of the package.
type debPackage struct{ name, version, arch, source string }

// parseStatus reads the packages that are installed from dpkg's status file. They are in the
// order of the file. Packages that were removed and left their settings are not installed.
func parseStatus(r io.Reader) ([]debPackage, error) {
	var packages []debPackage
	var p debPackage
	installed := false
	end := func() {
		if installed && p.name != "" {
			packages = append(packages, p)
		}
		p, installed = debPackage{}, false
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "":
			end()
		case "Package":
			p.name = value
		case "Version":
			p.version = value
		case "Architecture":
			p.arch = value
		case "Source":
			p.source, _, _ = strings.Cut(value, " ")
		case "Status":
			installed = strings.HasSuffix(value, " installed")
		}
	}
	end()
	return packages, lines.Err()
}

// purl names the package as scanners of vulnerabilities do.
// It is the package URL, of type deb, that scanners match with their lists of flaws.
func (p debPackage) purl() string {
	return fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", url.PathEscape(p.name), url.QueryEscape(p.version), p.arch)
}
