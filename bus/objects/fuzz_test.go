package objects

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
)

// FuzzNamed: the name of an object that is read from a subject leads back to
// that subject, and to no other bucket.
func FuzzNamed(f *testing.F) {
	buckets := []streams.Bucket{streams.BucketObjects, streams.BucketTranscripts, streams.BucketSnapshots}
	for _, b := range buckets {
		for _, path := range []string{"shop/a/a-001/patch/implement-1", "shop/a/-/session/x", "-/-/-/open/x", "shop/-/-/snapshot/x", "../../x", "shop//a"} {
			f.Add(b.Meta(path))
		}
	}
	f.Fuzz(func(t *testing.T, subject string) {
		found := 0
		for _, b := range buckets {
			name, ok := Named(b, subject)
			if !ok {
				continue
			}
			found++
			if path, err := name.path(); err != nil || b.Meta(path) != subject {
				t.Errorf("%q is %+v, which is on %q, %v", subject, name, b.Meta(path), err)
			}
		}
		if found > 1 {
			t.Errorf("%q names objects of two buckets", subject)
		}
	})
}

// FuzzDescribed: what is taken for the description of an object names that object and its content.
func FuzzDescribed(f *testing.F) {
	f.Add([]byte(`{"name":"shop/a/a-001/patch/implement-1","nuid":"x","size":1,"chunks":1}`))
	f.Add([]byte(`{"stream":"FORGE_INTENTS","seq":7}`))
	f.Add([]byte(`{"error":{"description":"wrong last msg ID: \",\"name\":\"shop/a"}}`))
	subject := streams.BucketObjects.Meta("shop/a/a-001/patch/implement-1")
	f.Fuzz(func(t *testing.T, data []byte) {
		info, ours := described(streams.BucketObjects, &conn.Stored{Subject: subject, Data: data})
		if ours && (streams.BucketObjects.Meta(info.Name) != subject || info.NUID == "") {
			t.Errorf("%q describes %q", data, info.Name)
		}
	})
}
