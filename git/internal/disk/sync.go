package disk

import "os"

// Flush gives the content of a file to the disk. The last of many files is flushed with
// the disk's own cache, which makes all of them durable.
func Flush(name string, last bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if last {
		return f.Sync()
	}
	return writeOut(f)
}
