package notify_test

import (
	"errors"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
	"github.com/pfl-forge/pfl-forge/notify"
)

// FuzzParse: a file of notifications is refused with a list of reasons, or each
// of its targets is one that can be reached in bounds.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"notifications: {a: {command: [x]}}", "notifications: {a: {webhook: 'https://e.example/x', secret_file: /s, most: 3, window: 1m}}",
		"notifications: {a: {webhook_file: /x, on: [failed], projects: [p]}}",
		"notifications: {a: {webhook: 'file:///etc/passwd'}}", "notifications: {A b: {command: []}}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := notify.Parse(data, "n.yaml")
		if err != nil {
			if list, ok := errors.AsType[strictyaml.Errors](err); !ok || len(list) == 0 || list[0].Reason == "" || list[0].File != "n.yaml" {
				t.Fatalf("error is %T: %v", err, err)
			}
			return
		}
		for _, g := range c.Targets {
			if (len(g.Command) > 0) == (g.Webhook != "" || g.WebhookFile != "") || g.Most < 1 || g.Window <= 0 || g.Window > 1000*time.Hour || g.Name == "" {
				t.Errorf("target %+v", g)
			}
			if u, err := url.Parse(g.Webhook); g.Webhook != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
				t.Errorf("webhook %q", g.Webhook)
			}
			if g.SecretFile != "" && !filepath.IsAbs(g.SecretFile) || g.WebhookFile != "" && !filepath.IsAbs(g.WebhookFile) {
				t.Errorf("target %+v", g)
			}
		}
	})
}
