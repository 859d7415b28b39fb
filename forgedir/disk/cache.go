package disk

import (
	"crypto/rand"
	"errors"
	"os"
	"path"

	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// Cache is the next version of a file inside .forge that only makes work
// shorter: it may be missing, old or torn at any time, and then it is made
// again. Of several who write one at the same time the last one wins.
type Cache struct {
	// Began is when it was begun, by the clock of the file system: every change
	// after that has a Stamp that is not Changed before.
	Began int64

	disk *Disk
	rel  string
	name string // in layout.Staging
	file *os.File
}

// ReadCache returns the content that was Put last; false if there is none, or not all of it.
func (d *Disk) ReadCache(rel string) ([]byte, bool) {
	data, _, err := d.Read(rel, MaxOther)
	n := len(data) - len(Digest{})
	if err != nil || n < 0 || DigestOf(data[:n]) != Digest(data[n:]) {
		return nil, false
	}
	return data[:n], true
}

// BeginCache begins the next version of a cache. Where nothing can be written,
// such as in a repository of others, the error says why. Put or Drop ends it.
func (d *Disk) BeginCache(rel string) (*Cache, error) {
	c := &Cache{disk: d, rel: rel, name: path.Join(layout.Staging, path.Base(rel)+"."+rand.Text()+Fresh)}
	var err error
	if c.file, err = d.forge.OpenFile(c.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		return nil, err
	}
	info, err := c.file.Stat()
	if err != nil {
		return nil, errors.Join(err, c.Drop())
	}
	if s, ok := StampOf(info); ok { // otherwise it began before everything, and all is read again
		c.Began = s.Changed
	}
	return c, nil
}

// Put ends the version with its content. It is not flushed: what a power cut tears is not whole.
func (c *Cache) Put(data []byte) error {
	sum := DigestOf(data)
	_, err := c.file.Write(data)
	if err == nil {
		_, err = c.file.Write(sum[:])
	}
	if err = errors.Join(err, c.file.Close()); err == nil {
		err = c.disk.Rename(c.name, c.rel)
	}
	if err != nil {
		return errors.Join(err, IgnoreMissing(c.disk.Remove(c.name)))
	}
	return nil
}

// Drop ends the version without a content.
func (c *Cache) Drop() error {
	return errors.Join(c.file.Close(), IgnoreMissing(c.disk.Remove(c.name)))
}
