# A server of home directories: each user makes a file, adds to another, reads a third, deletes one and looks at one.
# The files' sizes follow a gamma law.

# Where the files are made.
set $dir=/tmp

# The files; of a hundred that there can be, so many exist at the start.
set $files=10000
set $dirwidth=20
set $homesize=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)
set $existing=80

set $nthreads=50
set $memory=10m

# One read or write, and what is added: anything from nothing to this much.
set $iosize=1m
set $appendsize=16k

set $seconds=60

define fileset name=homes, path=$dir, entries=$files, size=$homesize, dirwidth=$dirwidth, prealloc=$existing

define process name=server, instances=1
{
  thread name=user, instances=$nthreads, memsize=$memory
  {
    flowop createfile     name=make-open, filesetname=homes, fd=1
    flowop writewholefile name=make-write, fd=1, srcfd=1, iosize=$iosize
    flowop closefile      name=make-close, fd=1
    flowop openfile       name=append-open, filesetname=homes, fd=1
    flowop appendfilerand name=append-write, fd=1, iosize=$appendsize
    flowop closefile      name=append-close, fd=1
    flowop openfile       name=read-open, filesetname=homes, fd=1
    flowop readwholefile  name=read-all, fd=1, iosize=$iosize
    flowop closefile      name=read-close, fd=1
    flowop deletefile     name=discard, filesetname=homes
    flowop statfile       name=look, filesetname=homes
  }
}

run $seconds
