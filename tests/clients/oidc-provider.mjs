// A real OpenID provider (npm oidc-provider, certified), for tests: node oidc-provider.mjs CONFIG.json
// The file of users is read at each sign-in, so that a test can change groups. Prints a line when it listens.
import { readFileSync } from "node:fs";
import { Provider } from "oidc-provider";

const told = JSON.parse(readFileSync(process.argv[2], "utf8"));
const users = () => JSON.parse(readFileSync(told.users, "utf8"));

const provider = new Provider(told.issuer, {
  clients: told.clients,
  jwks: { keys: told.keys },
  cookies: { keys: ["only for tests"] },
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email"] },
  scopes: ["openid", "profile", "email"],
  conformIdTokenClaims: told.userinfo, // with it, claims are told apart from the ID token
  pkce: { required: () => true },
  features: { devInteractions: { enabled: true } },
  async findAccount(_, id) {
    if (!(id in users())) return undefined;
    return { accountId: id, claims: async () => ({ sub: users()[id].sub ?? id, ...users()[id] }) };
  },
  ttl: { Session: 3600, Grant: 3600, Interaction: 3600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
});
provider.on("server_error", (_, error) => console.error(error));
provider.listen(told.port, "127.0.0.1", () => console.log("ready"));
