package disk

import (
	"os"
)

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
