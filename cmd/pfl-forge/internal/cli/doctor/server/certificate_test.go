package server

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
)

// TestCertificateThatEnds: who looks is told a month before a certificate of
// years ends, and hours before one of a day.
func TestCertificateThatEnds(t *testing.T) {
	const day = 24 * time.Hour
	begin := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		life, left time.Duration
		want       bool
	}{
		{825 * day, 31 * day, false},
		{825 * day, 29 * day, true},
		{90 * day, 20 * day, false}, // cert-manager renews it when a third is left
		{90 * day, 14 * day, true},
		{day, 5 * time.Hour, false},
		{day, 3 * time.Hour, true},
	} {
		found := checkCertificate(&x509.Certificate{NotBefore: begin, NotAfter: begin.Add(c.life)}, begin.Add(c.life-c.left))
		if (len(found) == 1) != c.want || c.want && (found[0].Health != diagnosis.Warning || !strings.Contains(found[0].Hint, "auth init --role server")) {
			t.Errorf("of %s are left %s: %+v", c.life, c.left, found)
		}
	}
	if found := checkCertificate(nil, begin); len(found) > 0 {
		t.Errorf("without one: %+v", found)
	}
}
