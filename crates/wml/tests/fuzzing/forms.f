# Every form of the language that there is, so that wrong inputs made of it reach all of the parser.
debug 1
version
list
list fileset
list flowop
vars
help
set $dir=/tmp
set $path="/mnt/a b"
set $n=10
set $half=1.5
set $hex=0x1F
set $big=2G
set $flag=true
set $copy=$n
set $sum=$n * 2 + 4 / 2 - 1
set $quotient=$n/2
set $below=$dir/sub
set mode quit alldone
set mode quit firstdone
set mode quit timeout
set mode nousestats
set $gamma = randvar(type=gamma, seed=7, mean=8k, min=1k, round=1k, gamma=1500, randsrc=rand48)
set $even = randvar(type=uniform, mean=$n, min=0, randsrc=urandom)
set $table = randvar(type=tabular, min=1k, randtable = {{50, 1k, 2k}, {$n, $n, 4k}, {40, 2k, 2k}})
define randvar name=$older, type=gamma, min=1k, mean=4k
set $gamma.mean = 16k
set $mean = $gamma.mean
set $gamma.type = uniform
set $gamma.randsrc = urandom
set $size=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5,min=1k,max=1m,round=512)
set $normal=cvar(type=cvar-normal,parameters="mean:$n;sigma:3")
set $erlang=cvar(type=cvar-erlang,parameters=shape:3;rate:0.5)
set $weibull=cvar(type=cvar-weibull,parameters=shape:1.5;scale:100)
set $triangle=cvar(type=cvar-triangular,parameters=lower:1;upper:9;mode:2)
set $lognormal=cvar(type=cvar-lognormal,parameters=shape:1;scale:8)
set $exponential=cvar(type=cvar-exponential,parameters=mean:100)
set $uniform=cvar(type=cvar-uniform,parameters=lower:1;upper:9)
eventgen rate = $n
enable lathist
enable multi master="host", client=here
domultisync value=1
define fileset name=bigfileset,path=$dir,size=$size,entries=$n,dirwidth=20,prealloc=80,paralloc,reuse,trusttree=false,dirgamma=0,leafdirs=5,dirdepthrv=$even
define fileset name="other", path="$dir/x", filesize=16k, filesizegamma=1500, cached=$flag, entries=3, readonly, writeonly, datasource=entro, entropy=3.4
define file name=single,path=$(dir)/y,size=1g,prealloc
define flowop name=inner, $set, $count=2, iters=1
{
  flowop openfile name=open, filesetname=$set, fd=1, indexed=$even
  flowop readwholefile name=read, fd=1, iosize=1m, iters=$count
  flowop closefile name=close, fd=1
}
define flowop name=outer, $which
{
  flowop inner name=first, $set=$which, $count=3, iters=2
}
define process name=client,instances=$n,nice=5
{
  thread name=worker,memsize=10m,instances=2,useism,ioprio=4
  {
    flowop outer name=all, $which=bigfileset
    flowop createfile name=create, filesetname=other, fd=2, dsync, directio=0
    flowop writewholefile name=write, fd=2, srcfd=2, iosize=$gamma
    flowop appendfilerand name=append, fd=2, iosize=16k, noreadahead
    flowop fsync name=sync, fd=2
    flowop closefile name=close2, fd=2
    flowop deletefile name=delete, filesetname=other
    flowop read name=read, filesetname=single, random, iosize=2k, workingset=1m, opennext
    flowop aiowrite name=aio, filesetname=single, iosize=2k, random
    flowop aiowait name=wait
    flowop sempost name=post, target=turn, value=1, blocking
    flowop hog name=hog, value=1000
    flowop delay name=delay, value=1
    flowop iopslimit name=limit, target=read
    flowop finishoncount name=finish, value=100, target=read
    flowop print name=print, value="text"
    flowop makedir name=make, filesetname=bigfileset
    flowop listdir name=list, filesetname=bigfileset
  }
  thread name=other
  {
    flowop semblock name=turn, value=10, highwater=5
    flowop wakeup name=wake, target=blocked
    flowop block name=blocked
  }
}
create files
create processes
stats clear
sleep 1
stats snap
stats directory $dir
stats command "vmstat 1"
stats dump "file"
warmup 5
foreach $n in 1, 2, 4 { echo "n is $n" }
foreach $name in "a", "b" { foreach $n in 1 { log "\$name is $name\n" } }
usage "Usage: set \$dir=<dir>"
system "sync; echo 3 > $dir/x" "and more"
load webserver
fscheck path=/tmp fstype=ext4
shutdown processes
psrun -10 60
psrun
run $n
quit
exit
