package notify_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/notify"
)

// The example of the guide is a file of notifications, and its table has every key.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../docs/guide-systems.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindSubmatch(page)
	if example == nil {
		t.Fatal("the guide has no example")
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(example[1]), "/etc/pfl-forge/hook-secret", secret)
	cfg, err := notify.Parse([]byte(text), "notifications.yaml")
	if err != nil || len(cfg.Targets) != 2 {
		t.Errorf("%+v, %v", cfg, err)
	}
	for f := range reflect.TypeFor[notify.Target]().Fields() {
		if key := f.Tag.Get("yaml"); key != "-" && !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("the guide does not name %s", key)
		}
	}
	for _, kind := range notify.Kinds() {
		if !strings.Contains(string(page), "`"+string(kind)+"`") {
			t.Errorf("the guide does not name %s", kind)
		}
	}
}
