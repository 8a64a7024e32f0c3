#include "guard/hazards.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "guard/support_rows.h"

namespace belljar::guard {
namespace {

TEST(Hazards, ADestinationThatAnOptionNamesIsJudged) {
  expect_rows({
      {"cp -t /etc f g", "forbid system-write", "cp -t out f g"},
      {"cp -rt/usr/bin f", "forbid system-write", "cp -rtout f"},
      {"cp --target-directory=/etc f", "forbid system-write", "cp --target-directory=out /etc/hosts"},
      {"cp --target /etc f", "forbid system-write", "cp --target out /etc/hosts"},
      {"cp f -t /etc", "forbid system-write", "cp /etc/hosts -t out"},
      {"mv -t /usr/lib f", "forbid system-write", "mv -t out f"},
      {"install -Dt /usr/bin f", "forbid system-write", "install -Dt out /usr/bin/f"},
      {"install --strip a /etc/x", "forbid system-write", "install --strip /etc/x a"},
      {"install -d a /etc/x b", "forbid system-write", "install -d a b"},
      {"ln -st /usr/bin f", "forbid system-write", "ln -st out /usr/bin/f"},
      {"cp -t \"$D\" f", "prompt system-write", "cp -t \"out-$D\" f"},
      {"cp -t\"$D\" f", "prompt system-write", "cp -tout f"},
      {"mv --target-directory=\"$D\" f", "prompt system-write", "mv --target-directory=out \"$f\""},
      {"rsync -a --log-file=/etc/x a b", "forbid system-write", "rsync -a --log-file=x /etc/a b"},
  });
}

TEST(Hazards, WhatOtherProgramsWriteIsJudged) {
  expect_rows({
      {"curl -o /etc/x u", "forbid system-write", "curl -o x u"},
      {"curl -fsSLo/etc/x u", "forbid system-write", "curl -fsSLo x u"},
      {"curl --output \"$f\" u", "prompt system-write", "curl --output f \"$u\""},
      {"wget -qO/etc/x u", "forbid system-write", "wget -qO- u"},
      {"wget -P /usr/bin u", "forbid system-write", "wget -P out u"},
      {"sort -o /etc/x y", "forbid system-write", "sort -o x /etc/y"},
      {"uniq a /etc/x", "forbid system-write", "uniq /etc/x a"},
      {"tar xf a -C /etc", "forbid system-write", "tar xf a -C out"},
      {"tar -xf a --directory=/usr", "forbid system-write", "tar -cf a --directory=/usr ."},
      {"tar czf /etc/a x", "forbid system-write", "tar xzf /etc/a x"},
      {"cd /etc && tar czf a ssl", "forbid system-write", "cd /etc && tar czf - ssl > /tmp/x"},
      {"cd /etc && tar -c --file=a ssl", "forbid system-write", "cd /etc && tar -c --file=- ssl > /tmp/x"},
      {"unzip a -d /etc", "forbid system-write", "unzip a -d out"},
      {"gcc -o /usr/bin/x a.c", "forbid system-write", "gcc -fno-rtti -L/usr/lib -o x a.c"},
      {"perl -pi -e s/a/b/ /etc/x", "forbid system-write", "perl -pe s/a/b/ /etc/x"},
      {"patch /etc/x p", "forbid system-write", "patch x p"},
      {"chown me /etc/passwd", "forbid system-write", "chown me x"},
      {"chown me \"$f\"", "prompt system-write", "chown \"$me\" f"},
      {"chgrp --reference=a /etc/x", "forbid system-write", "chgrp --reference=/etc/a x"},
      {"setfacl -m u:me:rw /etc/x", "forbid system-write", "setfacl -m u:me:rw x"},
      {"scp h:x /etc/x", "forbid system-write", "scp h:/etc/x x"},
      {"dd \"of=$f\"", "prompt raw-disk", "dd \"if=$f\" of=x"},
  });
}

TEST(Hazards, FindIsJudgedByWhereItBeginsAndWhatItDoes) {
  expect_rows({
      {"find / -delete", "forbid remove-root", "find / -print"},
      {"find /etc -exec rm {} +", "forbid remove-root", "find /etc -exec grep x {} +"},
      {"find a / -type f -exec shred {} \\;", "forbid remove-root", "find a b -type f -exec cat {} \\;"},
      {"find -L / -ok rm {} \\;", "forbid remove-root", "find -L a -ok rm {} \\;"},
      {"find ~ -execdir /bin/rm -f {} \\;", "forbid remove-root", "find ~/x -execdir /bin/rm -f {} \\;"},
      {"find $x -delete", "prompt remove-root", "find x -delete"},
      {"find \"$D\" -name x -exec rm {} +", "prompt remove-root", "find \"$D\" -name x -exec ls {} +"},
      {"find \"$D\" -exec rm -rf {} +", "prompt remove-root", "find d -exec rm -f {} +"},
      {"find . -delete", "prompt remove-root", "find . -name '*.o' -delete"},
      {"find -delete", "prompt remove-root", "find -name '*.o' -delete"},
      {"find . -type f -delete", "prompt remove-root", "find ./build -type f -delete"},
      {"find . -name x -o -delete", "prompt remove-root", "find . -name x -print -o -name y"},
      {"find . -name '*' -delete", "prompt remove-root", "find . -name 'a*' -delete"},
      {"find -files0-from f -delete", "prompt remove-root", "find -files0-from f"},
      {"find . -fprint /etc/x", "forbid system-write", "find /etc -fprint x"},
      {"find . -fprintf /etc/x %p", "forbid system-write", "find . -fprintf x /etc/%p"},
      {"find . -fls \"$f\"", "prompt system-write", "find . -fls f"},
      {"mv /etc x", "forbid remove-root", "mv x y"},
      {"mv ~ x", "forbid remove-root", "mv x ~"},
      {"chown -R me \"$d\"", "prompt remove-root", "chown -R me d *.txt"},
      {"chmod -R u+x \"$d\"", "prompt remove-root", "chmod -R u+x *.sh"},
  });
}

TEST(Hazards, ModesAreReadWhereverTheyStand) {
  expect_rows({
      {"mkdir -pm 777 x", "forbid world-writable", "mkdir -pm 755 x"},
      {"mkdir -m777 x", "forbid world-writable", "mkdir -m755 x"},
      {"mkdir --mo 777 x", "forbid world-writable", "mkdir --mo 755 777"},
      {"install -Dm 666 a b", "forbid world-writable", "install -Dm 644 a b"},
      {"install --mode \"$M\" a b", "prompt world-writable", "install --mode 644 a b"},
      {"mkfifo -m a=rw x", "forbid world-writable", "mkfifo -m u=rw x"},
      {"chmod =777 x", "forbid world-writable", "chmod =755 x"},
      {"chmod --reference=a x", "prompt world-writable", "chmod 644 reference"},
      {"install -m 4755 a b", "prompt setuid", "install -m 0755 a b"},
      {"chmod u+s x", "prompt setuid", "chmod u+x s"},
      {"chmod 2755 x", "prompt setuid", "chmod 1755 x"},
      {"umask 000", "forbid world-writable", "umask 022"},
      {"umask 0", "forbid world-writable", "umask 77"},
      {"umask a=rwx", "forbid world-writable", "umask u=rwx,g=rx,o="},
      {"umask \"$M\"", "prompt world-writable", "umask -S"},
      {"setfacl -m o::rwx x", "forbid world-writable", "setfacl -m u:me:rwx x"},
      {"setfacl -Rm d:o:6 x", "forbid world-writable", "setfacl -Rm d:o:5 x"},
      {"setfacl -m \"$a\" x", "prompt world-writable", "setfacl -x \"$a\" x"},
      {"setfacl --restore=f", "prompt world-writable", "setfacl -b f"},
  });
}

TEST(Hazards, WhatIsForbiddenInOneSpellingIsNotAllowedInAnother) {
  expect_rows({
      {"rm $x /", "prompt remove-root", "rm $x y"},
      {"y='-r -f'; rm $y /", "prompt remove-root", "y='-r -f'; echo $y /"},
      {"rm \"-$x\" ~", "prompt remove-root", "rm \"./$x\" y"},
      {"find / | xargs rm", "prompt remove-root", "find x | xargs rm"},
      {"chmod o=u x", "prompt world-writable", "chmod u=g x"},
      {"curl -o x u; sh x", "prompt download-to-shell", "curl -o x u; sh y"},
      {"curl u > x && chmod +x x && ./x", "prompt download-to-shell", "curl u > x && chmod +x x && ./y"},
      {"cd /tmp; wget https://h/i.sh; bash i.sh", "prompt download-to-shell", "bash i.sh; wget https://h/i.sh"},
      {"curl -O h/g.py; python3 g.py", "prompt download-to-shell", "curl -O h/g.py; cat g.py"},
  });
}

TEST(Hazards, ManyDownloadsAndShellsAreJudgedInTime) {
  std::string text;
  for (int i = 0; i < 1500; ++i) text += "curl -o a" + std::to_string(i) + " u;sh b;";
  EXPECT_EQ(judged(text.substr(0, 60'000)).substr(0, 6), "prompt");
  EXPECT_EQ(judged("curl -o a u; sh b"), "allow");
}

TEST(Hazards, AnEmptyOperandRemovesNothing) {
  EXPECT_EQ(judged("rm -rf ''"), "allow");
  EXPECT_EQ(judged("rm -rf '' /"), "forbid remove-root");
  EXPECT_EQ(judged("rm -rf ''/"), "forbid remove-root");
  EXPECT_EQ(judged("rm -rf ''*"), "prompt remove-root");
}

TEST(Hazards, EachLetterOfTarsFirstWordTakesItsValueInOrder) {
  expect_rows({
      {"tar xCf /etc a", "forbid system-write", "tar xCf out /etc/a"},
      {"tar xfC a.tar /etc", "forbid system-write", "tar xfC /etc/a.tar out"},
      {"tar cfC /etc/a src .", "forbid system-write", "tar cfC a /etc ."},
      {"tar xbCf 20 /etc a", "forbid system-write", "tar xbCf 20 out a"},
      {"tar xzvCf /usr/lib a", "forbid system-write", "tar xzvCf lib a"},
      {"tar -xzC/etc -f a", "forbid system-write", "tar -xzCout -f /etc/a"},
      {"tar -xfa -C /etc", "forbid system-write", "tar -tfax -C /etc"},
      {"tar -cf/etc/a x", "forbid system-write", "tar -tf/etc/cron.tar"},
      {"tar xf a -C / -C etc", "forbid system-write", "tar xf a -C /tmp -C etc"},
      {"tar --extract --file a --dir /etc", "forbid system-write", "tar --extract --file /etc/a --dir out"},
      {"tar xf a --one-top-level=/etc/x", "forbid system-write", "tar xf a --one-top-level=x"},
      {"cd /etc && tar xf a", "forbid system-write", "cd /etc && tar xOf a"},
      {"tar cgf /etc/list a x", "forbid system-write", "tar cgf list a /etc"},
      {"tar --delete -f /etc/a x", "forbid system-write", "tar --list -f /etc/a x"},
      {"tar xCf \"$d\" a", "prompt system-write", "tar xCf out \"$a\""},
      {"tar xIf 'sudo sh' a", "forbid sudo", "tar xIf zstd a"},
      {"tar xfI a 'sudo sh'", "forbid sudo", "tar xfI 'sudo sh' zstd"},
  });
}

TEST(Hazards, WhatGitWritesOutsideItsTreeIsJudged) {
  expect_rows({
      {"git archive --output=/etc/x HEAD", "forbid system-write", "git archive --output=x HEAD /etc"},
      {"git archive -o /etc/x HEAD", "forbid system-write", "git archive -o x HEAD"},
      {"git archive --out /etc/x HEAD", "forbid system-write", "git archive --prefix /etc/ HEAD"},
      {"git format-patch -o /etc main", "forbid system-write", "git format-patch -o out main"},
      {"git format-patch --output-directory=/etc main", "forbid system-write", "git format-patch --cover-letter main"},
      {"git bundle create /etc/x HEAD", "forbid system-write", "git bundle verify /etc/x"},
      {"git bundle create -q /etc/x HEAD", "forbid system-write", "git bundle create -q x HEAD"},
      {"git -C /etc archive -o x HEAD", "forbid system-write", "git -C /srv/p archive -o x HEAD"},
      {"git -C / -C etc bundle create x HEAD", "forbid system-write", "git -C /etc -C /tmp bundle create x HEAD"},
      {"cd /etc; git archive -o x HEAD", "forbid system-write", "cd /etc; git archive -o /tmp/x HEAD"},
      {"git log --output=/etc/x", "forbid system-write", "git log --output-indicator-new=/etc/x"},
      {"git clone u /etc/x", "forbid system-write", "git clone /etc/x p"},
      {"git clone -b main --depth 1 u /usr/lib/x", "forbid system-write", "git clone -b /usr/lib --depth 1 u x"},
      {"git init /etc", "forbid system-write", "git init p"},
      {"git worktree add /etc/x", "forbid system-write", "git worktree list /etc/x"},
      {"git config --system a.b c", "forbid system-write", "git config --system a.b"},
      {"git config -f /etc/x a.b c", "forbid system-write", "git config -f /etc/x --get a.b"},
      {"git --work-tree=/etc checkout -f", "forbid system-write", "git --work-tree=/etc status"},
      {"git checkout-index --prefix=/etc/ -a", "forbid system-write", "git checkout-index --prefix=out/ -a"},
      {"git archive -o \"$f\" HEAD", "prompt system-write", "git archive -o \"out-$f\" HEAD"},
  });
}

TEST(Hazards, WhatIsMadeOrTakenAwayInTheSystemIsAskedAbout) {
  expect_rows({
      {"rm /etc/passwd", "prompt system-write", "rm /tmp/passwd \"$f\""},
      {"rm -f /usr/bin/l*", "prompt system-write", "rm -f /usr/local/bin/l*"},
      {"unlink /etc/x", "prompt system-write", "unlink x"},
      {"cd /etc && rm passwd", "prompt system-write", "cd /etc && (cd /tmp && rm passwd)"},
      {"mv /etc/passwd /tmp/x", "prompt system-write", "mv /tmp/x out"},
      {"mkdir -p /usr/lib/x", "prompt system-write", "mkdir -m 755 -p out/usr/lib/x"},
      {"touch -r /tmp/a /etc/x", "prompt system-write", "touch -r /etc/x a"},
      {"gzip /etc/passwd", "prompt system-write", "gzip -c /etc/passwd"},
      {"go build -o /usr/bin/ls .", "forbid system-write", "go build -o ls ."},
      {"rm -rf /etc/x", "prompt system-write", "rm -rf /var/tmp/x"},
  });
}

TEST(Hazards, WhatFillsTheRootIsAskedAbout) {
  expect_rows({
      {"cp -a rootfs/. /", "prompt system-write", "cp -a / out"},
      {"tar xf a -C /", "prompt system-write", "tar cf a -C / ."},
      {"cd / && tar xf a", "prompt system-write", "cd / && tar tf a"},
      {"unzip -d / a", "prompt system-write", "unzip -d out a"},
      {"rsync -a x/ /", "prompt system-write", "rsync -a / x/"},
      {"patch -d / -p1", "prompt system-write", "patch -d src -p1"},
  });
}

TEST(Hazards, ANameThatIsGivenAnotherMeaningIsSeen) {
  expect_rows({
      {"hash -p /tmp/x ls; ls", "prompt unread", "hash -r; ls"},
      {"enable -f ./x.so x", "prompt unread", "enable -n echo"},
      {"complete -C ./x ls", "prompt unread", "complete -p"},
      {"bind -x '\"a\": x'", "prompt unread", "bind -l"},
      {"read -r PATH < f", "prompt environment", "read -r path < f"},
      {"printf -v LD_PRELOAD x", "prompt environment", "printf -v line x"},
  });
}

TEST(Hazards, ARelativeNameIsSeenFromWhereCdLed) {
  expect_rows({
      {"cd /etc; echo x > passwd", "forbid system-write", "cd out; echo x > passwd"},
      {"cd /etc && tee passwd", "forbid system-write", "cd /etc && cat passwd"},
      {"cd / && rm -rf etc", "forbid remove-root", "cd /tmp && rm -rf etc"},
      {"cd /; rm -rf *", "forbid remove-root", "cd /tmp; rm -r x"},
      {"cd; rm -rf *", "forbid remove-root", "cd; rm -rf x"},
      {"cd ~ && rm -rf ./*", "forbid remove-root", "cd ~ && ls ./*"},
      {"cd /usr; cd local/../bin; cp x ls", "forbid system-write", "cd /usr && cd local/bin && cp x ls"},
      {"cd / && find -delete", "forbid remove-root", "cd / && find -print"},
      {"cd /etc; sh -c 'echo x > passwd'", "forbid system-write", "cd /tmp; sh -c 'echo x > passwd'"},
      {"cd /dev; dd of=sda", "forbid raw-disk", "cd /dev; dd if=sda of=/tmp/x"},
      {"env -C /etc tee passwd", "forbid system-write", "env -C /tmp tee passwd"},
      {"env --chdir=/ rm -rf etc", "forbid remove-root", "env --chdir=out rm -rf etc"},
      {"d=/etc; cd \"$d\"; echo > x", "forbid system-write", "d=/tmp; cd \"$d\"; echo > x"},
      {"pushd /etc; tee x", "forbid system-write", "pushd /etc && popd && tee x"},
      {"(cd /etc; tee x)", "forbid system-write", "(cd /etc; ls); tee x"},
      {"cd /etc; tee x", "forbid system-write", "y=$(cd /etc; pwd); tee x"},
      {"cd /etc || exit; tee x", "forbid system-write", "cd /etc && cd - && tee x"},
      {"cd /etc; cd /tmp; cd /etc; tee x", "forbid system-write", "cd /etc; cd /tmp; tee x"},
  });
}

TEST(Hazards, ABraceListMayHoldAnAbsoluteNameBehindCd) {
  expect_rows({
      {"cd /home/me/proj; tee {out,/etc/passwd}", "prompt system-write", "cd /home/me/proj; tee {out,new}"},
      {"cd /tmp/x && sed -i s/a/b/ {f,/etc/passwd}", "prompt system-write", "cd /tmp/x && sed -i s/a/b/ {f,g}"},
      {"cd ~/p; chown -R me {/etc,a}", "prompt system-write", "cd ~/p; chown -R me {etc,a}"},
      {"cd /tmp; for f in {out,/etc/passwd}; do tee \"$f\"; done", "prompt system-write",
       "cd /tmp; for f in {out,passwd}; do tee \"$f\"; done"},
      {"cd /etc; tee {a/b,c}", "forbid system-write", "cd /etc; cat {a/b,c}"},
  });
}

TEST(Hazards, FindBeginsBehindItsOptions) {
  expect_rows({
      {"find -- / -name '*.x' -delete", "forbid remove-root", "find -- out -name '*.x' -delete"},
      {"find -- /etc -size +0 -delete", "forbid remove-root", "find -- /etc -size +0 -print"},
      {"find -L -- / -delete", "forbid remove-root", "find -L -- out -delete"},
      {"find -- / | xargs rm", "prompt remove-root", "find -- out | xargs rm"},
      {"find -L / | xargs rm", "prompt remove-root", "find -L out | xargs rm"},
      {"cd / && find | xargs rm", "prompt remove-root", "cd /tmp/x && find | xargs rm"},
  });
}

TEST(Hazards, OnlyATestThatLeavesSomethingOutIsAFilterOfFind) {
  expect_rows({
      {"find . -delete -name x", "prompt remove-root", "find . -name x -delete"},
      {"find . -path './*' -delete", "prompt remove-root", "find . -path './x*' -delete"},
      {"find . -regex '.*' -delete", "prompt remove-root", "find . -regex '.*o' -delete"},
      {"find . -name '?*' -exec rm {} +", "prompt remove-root", "find . -name '?*.o' -delete"},
  });
}

TEST(Hazards, ABeginningOfALongOptionIsReadAsGetoptDoes) {
  expect_rows({
      {"cp --suf -t a /etc/passwd", "forbid system-write", "cp --suf -t a passwd"},
      {"cp --suf -- --target-directory=/etc f", "forbid system-write", "cp --suf -- --target-directory=out f"},
      {"install --mod -t a /etc/passwd", "forbid system-write", "install --strip -t a /usr/bin/f"},
      {"mv --suf -t ~ x", "forbid remove-root", "mv --suf=-t x y"},
      {"rm --r -f ~", "forbid remove-root", "rm --r -f x"},
      {"sed --in s/a/b/ /etc/passwd", "forbid system-write", "sed --in s/a/b/ f"},
  });
}

TEST(Hazards, AnOwnerOrAModeIsNoPlace) {
  expect_rows({
      {"mv -t x ~", "forbid remove-root", "mv -t ~ file"},
      {"mv --target-directory x ~", "forbid remove-root", "mv --target-directory ~ file"},
      {"cd /home && chown -R app app", "forbid remove-root", "cd /home && chown -R app app/data"},
      {"cd / && chown -R root srv", "forbid remove-root", "cd / && chown -R root srv/x"},
      {"cd /home && chmod -R u+w proj", "forbid remove-root", "cd /home && chmod -R u+w proj/x"},
      {"chmod -R -w /home", "forbid remove-root", "chmod -R -w out"},
      {"chmod -R -077 /home", "forbid remove-root", "chmod -R -077 out"},
      {"chown -R --reference=f /home", "forbid remove-root", "chown -R --reference=/home f"},
      {"setfacl -R -m u:me:r /home", "forbid remove-root", "setfacl -R -m u:me:r f"},
  });
}

TEST(Hazards, AnOctalModeBehindASignIsJudged) {
  expect_rows({
      {"chmod +002 f", "forbid world-writable", "chmod -002 f"},
      {"chmod u=rwx,+777 f", "forbid world-writable", "chmod u=rwx,+755 f"},
      {"chmod =rw+2 f", "forbid world-writable", "chmod =rw+1777 f"},
      {"install -m +002 a b", "forbid world-writable", "install -m +005 a b"},
      {"chmod +4755 f", "prompt setuid", "chmod +0755 f"},
      {"chmod u=rwx,=2755 f", "prompt setuid", "chmod u=rwx,=755 f"},
  });
}

TEST(Hazards, ACdThatMayHaveFailedLeavesNoPlaceOfTheSystem) {
  expect_rows({
      {"cd /; cd nosuch; rm -rf etc", "prompt remove-root", "cd / && cd nosuch && rm -rf etc"},
      {"cd /; true || cd /tmp; rm -rf etc", "prompt remove-root", "cd /; true || cd /tmp; rm -rf x"},
      {"cd /; false && cd /tmp; rm -rf etc", "prompt remove-root", "cd / && cd /tmp && rm -rf x"},
      {"cd /; [ -d x ] && cd /tmp; rm -rf etc", "prompt remove-root", "cd /; [ -d x ] && cd /tmp && rm -rf etc"},
      {"cd /; { false && cd /tmp; }; rm -rf etc", "prompt remove-root", "cd /; { cd /tmp; }; rm -rf etc"},
      {"cd /; cd \"$d\"; rm -rf etc", "prompt remove-root", "cd /; cd \"$d\" && rm -rf etc"},
      {"cd /; cd /tmp & rm -rf etc", "forbid remove-root", "cd /; cd /tmp; rm -rf etc"},
      {"cd /; cd /srv/x || true; rm -rf etc", "prompt remove-root", "cd /; cd /srv/x || exit 1; rm -rf etc"},
      {"cd /; cd nosuch; sh -c 'tee etc/x'", "prompt system-write", "cd /; cd nosuch; sh -c 'cat etc/x'"},
      {"cd /; cd nosuch; cd etc; tee x", "prompt system-write", "cd /home/me/p; cd nosuch; cd etc; tee x"},
      {"cd / && cd nosuch; rm -rf etc", "prompt remove-root", "cd /tmp && cd nosuch; rm -rf etc"},
      {"cd /dev; cd ../x; dd of=sda", "prompt raw-disk", "cd /dev; cd ../x; dd if=sda of=/tmp/x"},
  });
}

TEST(Hazards, WhatAnOptionStartsIsJudged) {
  expect_rows({
      {"git -c alias.x='!rm -rf /' x", "forbid remove-root", "git -c alias.x='log -1' x"},
      {"git -c core.pager='sudo sh' log", "forbid sudo", "git -c core.pager=cat log"},
      {"git -c core.sshCommand=\"$x\" fetch", "prompt unread", "git -c user.name=\"$x\" commit"},
      {"git config alias.x '!sudo ls'", "forbid sudo", "git config user.name '!sudo ls'"},
      {"git config --global core.hooksPath x", "prompt unread", "git config --global core.quotePath x"},
      {"git rebase -x 'rm -rf /' main", "forbid remove-root", "git rebase -x 'make test' main"},
      {"git bisect run sudo make", "forbid sudo", "git bisect run make"},
      {"git submodule foreach 'rm -rf /'", "forbid remove-root", "git submodule foreach 'git status'"},
      {"git submodule foreach --recursive rm -rf /", "forbid remove-root", "git submodule foreach --recursive git status -s"},
      {"git submodule --quiet foreach rm -rf /", "forbid remove-root", "git submodule --quiet foreach git pull -r"},
      {"git submodule foreach --recursive 'rm -rf' /", "forbid remove-root", "git submodule foreach --recursive 'git log' -1"},
      {"git bisect run rm -rf /", "forbid remove-root", "git bisect run make -j4 test"},
      {"git bisect run sh -c 'sudo make'", "forbid sudo", "git bisect run sh -c 'make && ./test'"},
      {"git submodule foreach $x -y", "prompt unread", "git submodule foreach git checkout \"$x\""},
      {"git send-email --to-cmd='sudo x' a", "forbid sudo", "git send-email --to=a@b.c --cc=d@e.f --header=x a"},
      {"git send-email --cc-c='sudo x' a", "forbid sudo", "git format-patch --to=\"A <a@b.c>\" --cc='B <b@c.d>' -1"},
      {"git config sendemail.smtpserver /tmp/x", "prompt unread", "git config sendemail.smtpserver smtp.gmail.com"},
      {"git config sendemail.me.smtpserver \"$x\"", "prompt unread", "git config sendemail.me.smtpserver smtp.gmail.com"},
      {"git clone ext::x", "prompt unread", "git clone https://ext/x"},
      {"git --exec-path=. log", "prompt unread", "git -C x log"},
      {"git -c submodule.x.update='!sudo sh' submodule update", "forbid sudo", "git -c submodule.x.update=rebase submodule update"},
      {"git -c submodule.x.update=\"$u\" submodule update", "prompt unread", "git -c submodule.recurse=\"$u\" pull"},
      {"git -c core.fsmonitor='sudo sh' status", "forbid sudo", "git -c core.fsmonitor=false status"},
      {"git -c core.editor='sudo vi' commit", "forbid sudo", "git -c core.editor=true commit"},
      {"git -c credential.https://h.helper='!sudo x' fetch", "forbid sudo", "git -c credential.https://h.helper=cache fetch"},
      {"git -c diff.external='sudo x' diff", "forbid sudo", "git -c diff.renames=copies diff"},
      {"git -c gpg.program='sudo x' commit -S", "forbid sudo", "git -c gpg.format=ssh commit -S"},
      {"git -c imap.tunnel='sudo x' imap-send", "forbid sudo", "git -c imap.folder=x imap-send"},
      {"git -c browser.w.path='sudo x' web--browse u", "forbid sudo", "git -c web.browser=w web--browse u"},
      {"git -c hook.a.command='sudo x' commit", "forbid sudo", "git -c hook.a.event=pre-commit commit"},
      {"git -c 'url.ext::sh -c x.insteadOf=u' fetch u", "prompt unread", "git -c url.https://h.insteadOf=u fetch u"},
      {"git -c remote.o.url='ext::sh -c x' fetch o", "prompt unread", "git -c remote.o.url=https://h/x fetch o"},
      {"git -c remote.o.vcs=x fetch o", "prompt unread", "git -c remote.o.prune=true fetch o"},
      {"git -c some.newProgram=x log", "prompt unread", "git -c color.pager=false log"},
      {"git config -f .git/config alias.x '!sudo ls'", "forbid sudo", "git config -f .git/config user.name '!sudo ls'"},
      {"git config set --global core.pager 'sudo ls'", "forbid sudo", "git config get --global core.pager"},
      {"git merge-index 'sudo x' -a", "forbid sudo", "git merge-index git-merge-one-file -a"},
      {"git remote-ext o 'sudo x'", "forbid sudo", "git remote show o"},
      {"git grep --open-files-in-pager='sudo x' a", "forbid sudo", "git grep --open-files-in-pager a"},
      {"git init --template=t", "prompt unread", "git init --bare"},
      {"tar --to-command='rm -rf /' -xf x", "forbid remove-root", "tar -xf x"},
      {"tar --checkpoint=1 --checkpoint-action=exec='sudo sh' -cf x y", "forbid sudo", "tar --checkpoint-action=dot -cf x y"},
      {"tar -I 'sudo x' -xf x", "forbid sudo", "tar -I zstd -xf x"},
      {"rsync -e 'sudo ssh' a h:b", "forbid sudo", "rsync -e ssh a h:b"},
      {"ssh -o proxycommand='sudo nc' h", "forbid sudo", "ssh -o Port=22 h"},
      {"ssh -oProxyCommand=\"$x\" h", "prompt unread", "ssh -oUser=\"$x\" h"},
      {"sort --compress-program='sudo x' y", "forbid sudo", "sort -k 2 y"},
      {"split --filter='rm -rf /' x", "forbid remove-root", "split -l 9 x"},
      {"env 'a%=1' rm -rf /", "forbid remove-root", "env 'a%=1' rm -rf x"},
      {"env -S 'rm -rf /'", "prompt unread", "env rm -rf x"},
      {"rm -rf /proc/self/root", "forbid remove-root", "rm -rf x/proc/self/root"},
      {"rm -rf /proc/self/cwd", "prompt remove-root", "rm -rf proc/self/cwd"},
      {"sed -n 's/a/b/w /etc/x' f", "prompt system-write", "sed -n 's/a/b/w x' f"},
  });
}

}  // namespace
}  // namespace belljar::guard
