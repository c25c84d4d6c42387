//! Another user, for a command that need not be root.
//!
//! `ip netns exec` needs root, and so the change of user comes after it: `setpriv` of util-linux sets the user, the group
//! and the supplementary groups, clears the inheritable capabilities, and becomes the program. What the environment says
//! of the user is set to match.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use nix::unistd::{Gid, Uid, User};

use crate::Error;
use crate::lab::Lab;
use netio::program::find_program;

/// What changes the user.
const SETPRIV: &str = "setpriv";
/// What `sudo` and a login leave in the environment that is another user's.
const OTHERS: [&str; 8] = [
    "SUDO_COMMAND",
    "SUDO_GID",
    "SUDO_HOME",
    "SUDO_UID",
    "SUDO_USER",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "MAIL",
];

/// A user of this machine.
#[derive(Clone, Debug)]
pub struct Account {
    uid: Uid,
    gid: Gid,
    /// What the user database has beyond the numbers.
    known: Option<User>,
}

impl Account {
    /// The user with this name, or with this number, who need not be in the user database.
    ///
    /// # Errors
    /// [`Error::Wrong`] if there is none, [`Error::Missing`] without `setpriv`.
    pub fn named(name: &str) -> Result<Account, Error> {
        if find_program(OsStr::new(SETPRIV)).is_none() {
            return Err(Error::Missing("`setpriv` is missing, which changes the user: install util-linux".to_owned()));
        }
        let failed = |e: nix::Error| Error::system(format!("look up the user `{name}`"))(e);
        let found = match User::from_name(name).map_err(failed)? {
            Some(user) => Some(user),
            None => match name.parse::<u32>() {
                Ok(number) => {
                    let known = User::from_uid(Uid::from_raw(number)).map_err(failed)?;
                    let gid = known.as_ref().map_or(Gid::from_raw(number), |user| user.gid);
                    return Ok(Account { uid: Uid::from_raw(number), gid, known });
                }
                Err(_) => None,
            },
        };
        let user = found.ok_or_else(|| Error::Wrong(format!("there is no user `{name}` on this machine")))?;
        Ok(Account { uid: user.uid, gid: user.gid, known: Some(user) })
    }

    /// A command that runs `program` in a host of `lab` as this user. See [`Lab::command`].
    pub fn command(&self, lab: &Lab, host: usize, program: &OsStr) -> Command {
        let mut command = lab.command(host, OsStr::new(SETPRIV));
        let groups = if self.known.is_some() { "--init-groups" } else { "--clear-groups" };
        command.arg(format!("--reuid={}", self.uid)).arg(format!("--regid={}", self.gid)).arg(groups);
        command.args(["--inh-caps=-all", "--"]).arg(program);
        for name in OTHERS {
            command.env_remove(name);
        }
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        command
    }

    fn environment(&self) -> [(&'static str, OsString); 4] {
        match &self.known {
            Some(user) => [
                ("HOME", user.dir.clone().into()),
                ("SHELL", user.shell.clone().into()),
                ("USER", user.name.clone().into()),
                ("LOGNAME", user.name.clone().into()),
            ],
            None => {
                let number = || OsString::from(self.uid.to_string());
                [("HOME", "/".into()), ("SHELL", "/bin/sh".into()), ("USER", number()), ("LOGNAME", number())]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_by_number() {
        if !testkit::root::has_program(find_program(OsStr::new(SETPRIV)).is_some(), "setpriv") {
            return;
        }
        for name in ["root", "0"] {
            let root = Account::named(name).expect("every machine has it");
            assert_eq!((root.uid.as_raw(), root.gid.as_raw()), (0, 0));
        }
        let stranger = Account::named("3999999").expect("a number is enough");
        assert_eq!((stranger.uid.as_raw(), stranger.known.is_none()), (3_999_999, true));
        let said = Account::named("no such user").expect_err("there is none").to_string();
        assert_eq!(said, "there is no user `no such user` on this machine");
    }
}
