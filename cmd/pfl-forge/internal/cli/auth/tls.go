package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

const (
	// authorityLife and serverLife are how long certificates are valid. A server's
	// must be renewed before; 825 days is the most that all clients accept.
	authorityLife = 10 * 365 * 24 * time.Hour
	serverLife    = 825 * 24 * time.Hour
	// clockSkew is how much earlier certificates begin, for clocks that are behind.
	clockSkew = time.Hour
)

// certificate is a certificate with its key, both in PEM.
// parsed and private are the same two, as crypto/x509 has them.
type certificate struct {
	cert, key []byte
	parsed    *x509.Certificate
	private   crypto.Signer
}

// newAuthority makes an authority that signs nothing but servers and clients.
// It can have no authority below it.
func newAuthority(now time.Time) (*certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "pfl-forge NATS authority"}, NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return sign(template, private, &certificate{parsed: template, private: private}, now)
}

// loadAuthority reads the authority that a person gives.
func loadAuthority(certFile, keyFile string) (*certificate, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-cert: %w", err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-key: %w", err)
	}
	c, err := parseAuthority(cert, key)
	if err != nil {
		return nil, fmt.Errorf("--ca-cert and --ca-key: %w", err)
	}
	return c, nil
}

// parseAuthority reads an authority, and refuses what cannot sign.
// One that has ended is refused, as no client would accept its signature.
func parseAuthority(cert, key []byte) (*certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	private, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("the certificate is not one of an authority")
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("the authority's certificate has ended on %s", pair.Leaf.NotAfter.Format(time.DateOnly))
	}
	return &certificate{cert: cert, key: key, parsed: pair.Leaf, private: private}, nil
}

// certify makes a certificate of a server, which in a cluster is a client of the
// others, too.
// names are host names, wildcards and addresses, at least one; the first one is its subject. It never outlives the
// authority.
func (c *certificate) certify(names []string, now time.Time) (*certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, NotAfter: now.Add(serverLife), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
	if c.parsed.NotAfter.Before(template.NotAfter) {
		template.NotAfter = c.parsed.NotAfter
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return sign(template, private, c, now)
}

// sign fills in what all certificates have, and signs.
// by is the authority, or for an authority itself the template with its own key. Serial numbers are random, since there
// is no book of those that were given.
func sign(template *x509.Certificate, private *ecdsa.PrivateKey, by *certificate, now time.Time) (*certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber, template.NotBefore = serial, now.Add(-clockSkew)
	der, err := x509.CreateCertificate(rand.Reader, template, by.parsed, &private.PublicKey, by.private)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	return &certificate{
		cert:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:    pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		parsed: parsed, private: private,
	}, nil
}

// serverNames returns the names and addresses by which clients reach the server.
// On Kubernetes these are the two services of deploy's NATS in every spelling that a client in the cluster may use, and
// each pod behind them. The machine itself is always among them.
func serverNames(o *options) []string {
	var names []string
	if o.kubernetes {
		for _, service := range []string{"nats", "nats-headless"} {
			for _, suffix := range []string{"", "." + o.namespace, "." + o.namespace + ".svc", "." + o.namespace + ".svc.cluster.local"} {
				names = append(names, service+suffix, "*."+service+suffix)
			}
		}
	}
	return append(append(names, o.hosts...), "localhost", "127.0.0.1", "::1")
}
