package wait

import (
	"flag"
	"runtime"
	"strconv"
)

// Beside lets more parallel tests of a package run at a time than there are processors, because
// they wait for disks, processes and each other most of the time. TestMain calls it. It is only the
// default: the flag -parallel wins.
func Beside() {
	const each = 2
	if err := flag.Set("test.parallel", strconv.Itoa(each*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
}
