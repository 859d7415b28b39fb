// Package authority makes the certificates of an installation: an authority,
// and by it those of NATS servers.
//
// Keys are ECDSA on P-256, made here and never sent anywhere. What is returned
// is PEM, as nats-server reads it; package auth decides where it is kept.
package authority

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

// Certificate is a certificate with its key. Cert and Key are in PEM; parsed
// and private are the same two, as crypto/x509 has them.
type Certificate struct {
	Cert, Key []byte
	parsed    *x509.Certificate
	private   crypto.Signer
}

// Until returns the time at which the certificate ends.
func (c *Certificate) Until() time.Time { return c.parsed.NotAfter }

// New makes an authority that signs nothing but servers and clients.
// It can have no authority below it.
func New(now time.Time) (*Certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "pfl-forge NATS authority"}, NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return sign(template, private, &Certificate{parsed: template, private: private}, now)
}

// Load reads the authority that a person gives, of two files in PEM. Its errors
// begin with the flags that name these.
func Load(certFile, keyFile string) (*Certificate, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-cert: %w", err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-key: %w", err)
	}
	c, err := Parse(cert, key)
	if err != nil {
		return nil, fmt.Errorf("--ca-cert and --ca-key: %w", err)
	}
	return c, nil
}

// Parse reads an authority, and refuses what cannot sign.
// One that has ended is refused, as no client would accept its signature.
func Parse(cert, key []byte) (*Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	private, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("the certificate is not that of an authority (CA)")
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("the authority's certificate expired on %s", pair.Leaf.NotAfter.Format(time.DateOnly))
	}
	return &Certificate{Cert: cert, Key: key, parsed: pair.Leaf, private: private}, nil
}

// Certify makes a certificate of a server, which in a cluster is a client of
// the others, too. names are host names, wildcards and addresses, at least one;
// the first one is its subject. It never outlives the authority.
func (c *Certificate) Certify(names []string, now time.Time) (*Certificate, error) {
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

// sign fills in what all certificates have, and signs. by is the authority, or
// for an authority itself the template with its own key. Serial numbers are
// random, since there is no book of those that were given.
func sign(template *x509.Certificate, private *ecdsa.PrivateKey, by *Certificate, now time.Time) (*Certificate, error) {
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
	return &Certificate{
		Cert:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:    pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		parsed: parsed, private: private,
	}, nil
}
