//go:build cluster

package k8s

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// tlsSecret is the Secret that components/cert-manager has made.
const tlsSecret = "forge-nats-tls"

// namedHere is the guide's advice for a namespace of another name: the patch of
// the names in the certificate.
func (in *installation) namedHere() string {
	var names []string
	for _, name := range []string{"nats", "*.nats-headless"} {
		names = append(names, fmt.Sprintf("%q", name), fmt.Sprintf("%q", name+"."+in.namespace+".svc"))
	}
	return fmt.Sprintf(`  - target: {kind: Certificate, name: %s}
    patch: |-
      - {op: replace, path: /spec/dnsNames, value: [localhost, %s]}
`, tlsSecret, strings.Join(names, ", "))
}

// knowCertificates has the API server know the kinds of cert-manager, by the
// definitions of its module.
func (in *installation) knowCertificates(t *testing.T) {
	t.Helper()
	for _, d := range definitions {
		if !strings.Contains(d.module, "cert-manager") {
			continue
		}
		dir := download(t, d.module)
		for _, kind := range []string{"issuers", "certificates"} {
			text, err := os.ReadFile(filepath.Join(dir, "deploy", "crds", "cert-manager.io_"+kind+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			crd := new(unstructured.Unstructured)
			if err := yaml.Unmarshal(text, &crd.Object); err != nil {
				t.Fatal(err)
			}
			if _, err := in.resource(crd); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { in.remove(t, crd) })
			if err := in.apply(wait.Context(t), crd); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, crd.GetName()+" is known", func() bool { return in.condition(t, crd, "Established") == "True" })
		}
	}
	in.mapper.Reset()
}

// certify does for the certificate of NATS what cert-manager does: it makes the Secret that
// the Certificate names, with a key of the names that it asks for. Its authority is that which
// clients have from auth init, whose certificate for NATS is taken away: no pod reads it.
func (in *installation) certify(t *testing.T, m *manifests) {
	t.Helper()
	ctx, secrets := wait.Context(t), in.client.CoreV1().Secrets(in.namespace)
	authority, err := secrets.Get(ctx, "forge-nats-ca", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := tls.X509KeyPair(authority.Data["ca.crt"], authority.Data["ca.key"])
	if err != nil {
		t.Fatal(err)
	}
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=pfl-forge"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		s := &list.Items[i]
		if s.Name == "forge-nats-ca" || s.Name == "forge-nats-operator" || s.Name == "forge-nats-backup" {
			continue // no services
		}
		for _, name := range []string{"ca.crt", "tls.crt", "tls.key"} {
			delete(s.Data, name)
		}
		if _, err := secrets.Update(ctx, s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range m.objects {
		if u.GetKind() != "Certificate" || u.GetName() != tlsSecret {
			continue
		}
		asked, err := in.resource(u)
		if err != nil {
			t.Fatal(err)
		}
		got, err := asked.Get(ctx, u.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		names, _, err := unstructured.NestedStringSlice(got.Object, "spec", "dnsNames")
		if err != nil {
			t.Fatal(err)
		}
		name, _, err := unstructured.NestedString(got.Object, "spec", "secretName")
		if err != nil {
			t.Fatal(err)
		}
		crt, key := signedBy(t, &ca, names)
		made := &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: core.SecretTypeTLS, Data: map[string][]byte{
			core.TLSCertKey: crt, core.TLSPrivateKeyKey: key, "ca.crt": authority.Data["ca.crt"],
		}}
		if _, err := secrets.Create(ctx, made, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("no Certificate is asked for")
}

// signedBy returns a certificate for names, and its key, both as PEM.
func signedBy(t *testing.T, ca *tls.Certificate, names []string) (crt, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: ca.Leaf.NotBefore, NotAfter: ca.Leaf.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, private.Public(), ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
