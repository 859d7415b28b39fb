//go:build cluster

package k8s

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// system is the name of the other system that asks for changes.
const system = "loadgen"

// secrets makes the Secrets of an installation: an nkey for each service, which the server
// knows with exactly its permissions, and certificates of an authority of their own. The
// system's is in a namespace of its own.
func (c *cluster) secrets(t *testing.T, namespace, systems string) {
	t.Helper()
	var accounts []access.Account
	for _, role := range access.Services() {
		accounts = append(accounts, account(t, role, string(role)))
	}
	accounts = append(accounts, account(t, access.Submitter, system))
	ca, cert, key := certificates(t, namespace)
	var users []access.User
	for _, a := range accounts {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		seed, err := pair.Seed()
		if err != nil {
			t.Fatal(err)
		}
		users = append(users, access.User{Account: a, Proof: access.NKey(public)})
		in := namespace
		if a.Role == access.Submitter {
			in = systems
		}
		c.secret(t, in, "forge-nats-"+a.Name, map[string][]byte{"nkey": seed, "ca.crt": ca})
	}
	c.secret(t, namespace, "forge-nats-server", map[string][]byte{
		"auth.conf": []byte(access.Conf(users, accounts)), "tls.crt": cert, "tls.key": key, "ca.crt": ca,
	})
}

func account(t *testing.T, role access.Role, name string) access.Account {
	t.Helper()
	a, err := access.NewAccount(role, name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (c *cluster) secret(t *testing.T, namespace, name string, data map[string][]byte) {
	t.Helper()
	s := &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/part-of": "pfl-forge"}}, Data: data}
	if _, err := c.client.CoreV1().Secrets(namespace).Create(wait.Context(t), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// certificates returns an authority, and a server's certificate and key.
func certificates(t *testing.T, namespace string) (ca, cert, key []byte) {
	t.Helper()
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pfl-forge NATS"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	rootKey, rootDER := sign(t, root, nil, nil)
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "nats"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"localhost", "nats", "nats." + namespace, "nats." + namespace + ".svc", "*.nats-headless", "*.nats-headless." + namespace + ".svc"},
	}
	serverKey, serverDER := sign(t, server, root, rootKey)
	der, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("CERTIFICATE", rootDER), pemOf("CERTIFICATE", serverDER), pemOf("PRIVATE KEY", der)
}

// sign returns a new key and its certificate, signed by parent or by itself.
func sign(t *testing.T, cert, parent *x509.Certificate, by *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, by = cert, key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

func pemOf(kind string, der []byte) []byte {
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: kind, Bytes: der})
	return b.Bytes()
}
