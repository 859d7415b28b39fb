package overhttp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/identity"
)

// parseAddress reads the address of a gateway. Without TLS it is on this
// machine: a token is not sent for all to read. The error does not repeat the
// address, in which a person may have put a password.
func parseAddress(server string) (*url.URL, error) {
	u, err := url.Parse(server)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, errors.New("--server: not an address; want one such as https://forge.example.com")
	case u.User != nil:
		return nil, errors.New("--server: leave out the user and the password; the token is in PFL_FORGE_TOKEN, or in the file of --token-file")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("--server: leave out what follows the path")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return nil, fmt.Errorf("--server: without TLS everybody on the way can read the token: give https://%s", u.Host)
	}
	// The address of the API itself may be pasted.
	u.Path = strings.TrimSuffix(path.Clean("/"+u.Path), "/")
	u.Path = strings.TrimSuffix(u.Path, "/api/v1")
	return u, nil
}

// isLoopback reports whether a host is this machine by its name. The connection
// is looked at as well: a name server may say anything of localhost.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// encryption returns how TLS is spoken: in no version that can be broken, and
// with the certificate always checked. The file has the authorities that the
// gateway's certificate is checked against, in PEM; empty for the system's.
func encryption(file string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return cfg, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	cfg.RootCAs = x509.NewCertPool()
	if !cfg.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--tls-ca: %s has no certificate in PEM", file)
	}
	return cfg, nil
}

// Address returns the address of a gateway in the one form by which its login is found again.
func Address(server string) (string, error) {
	u, err := parseAddress(server)
	if err != nil {
		return "", err
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	return u.String(), nil
}

// maxToken bounds a token of a gateway's file, in bytes, as the gateway does.
const maxToken = 200

// CheckToken returns why a text is no token; nil if it is one. The error does not repeat it. A
// token that holds the end of a line would be two headers, and one that is too long is not looked
// for by the gateway; both are mistakes of the file, which are told before anything is sent.
func CheckToken(text string) error {
	switch {
	case text == "":
		return errors.New("is empty")
	case len(text) > maxToken && !identity.IsToken(text):
		return fmt.Errorf("has %d bytes; a token has at most %d", len(text), maxToken)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("holds more than one line or word, or characters that no token has")
	}
	return nil
}
