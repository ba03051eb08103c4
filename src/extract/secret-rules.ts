/**
 * What secrets look like. Token shapes follow the issuers' documentation and the public rule sets of secretlint and
 * gitleaks; those run asynchronously or outside this runtime, while every write here redacts within its transaction.
 */

/** Runs of characters that a token may be made of; prose has few that long. */
export const TOKEN_RUN = /[A-Za-z0-9_\-.+/~]{16,}/g;

const TOKENS = [
  // OpenAI, Anthropic, OpenRouter, DeepSeek, Langfuse and the many that copied them.
  "sk-[A-Za-z0-9_-]{16,}",
  "(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{10,}",
  "whsec_[A-Za-z0-9+/]{16,}",
  "gh[pousr]_[A-Za-z0-9]{20,}",
  "github_pat_[A-Za-z0-9_]{20,}",
  "gl(?:pat|dt|rt|ptt|soat|ft|imt|agent|cbt)-[A-Za-z0-9_.-]{16,}",
  "xox[abeoprs]-[A-Za-z0-9-]{10,}",
  "xapp-[A-Za-z0-9-]{20,}",
  "(?:AKIA|ASIA|AIDA|AROA|ABIA|ACCA|AGPA|ANPA)[A-Z0-9]{16}",
  "AIza[A-Za-z0-9_-]{30,}",
  "ya29\\.[A-Za-z0-9_-]{20,}",
  "GOCSPX-[A-Za-z0-9_-]{20,}",
  "1//0[A-Za-z0-9_-]{30,}",
  "npm_[A-Za-z0-9]{30,}",
  "pypi-[A-Za-z0-9_-]{40,}",
  "hf_[A-Za-z0-9]{20,}",
  "api_org_[A-Za-z0-9]{30,}",
  "SG\\.[A-Za-z0-9_-]{16,}\\.[A-Za-z0-9_-]{16,}",
  "key-[0-9a-f]{32}",
  "[0-9a-f]{32}-us\\d{1,2}",
  "do[opr]_v1_[a-f0-9]{40,}",
  "shp(?:at|ss|ca|pa|ua)_[a-fA-F0-9]{20,}",
  "sq0[a-z]{3}-[A-Za-z0-9_-]{20,}",
  "EAAA[A-Za-z0-9_-]{50,}",
  "EAA[A-Za-z0-9]{80,}",
  "lin_(?:api|oauth)_[A-Za-z0-9]{20,}",
  "(?:ntn|secret)_[A-Za-z0-9]{30,}",
  "figd_[A-Za-z0-9_-]{20,}",
  "sbp_[a-f0-9]{30,}",
  "sb_(?:secret|publishable)_[A-Za-z0-9_-]{20,}",
  "dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
  "[A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9_-]{40,}",
  "hv[sbr]\\.[A-Za-z0-9_-]{20,}",
  "NR(?:AK|AA|JS|II)-[A-Za-z0-9_-]{16,}",
  "gl(?:sa|c)_[A-Za-z0-9_=]{20,}",
  "dp\\.(?:pt|st|ct|sa|scim|audit)\\.[A-Za-z0-9.]{30,}",
  "rubygems_[a-f0-9]{40,}",
  "oy2[a-z0-9]{40,}",
  "AT(?:ATT|CTT|BB)[A-Za-z0-9_=-]{20,}",
  "[MNO][A-Za-z0-9_-]{23,27}\\.[A-Za-z0-9_-]{6}\\.[A-Za-z0-9_-]{27,}",
  "(?:SK|AC)[0-9a-f]{32}",
  "PMAK-[A-Za-z0-9-]{40,}",
  "HRKU-[A-Za-z0-9_-]{30,}",
  "dapi[a-f0-9]{30,}(?:-\\d)?",
  "pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}",
  "pul-[a-f0-9]{40}",
  "xkeysib-[a-f0-9]{40,}[A-Za-z0-9-]*",
  "gsk_[A-Za-z0-9]{30,}",
  "xai-[A-Za-z0-9]{30,}",
  "pplx-[A-Za-z0-9]{30,}",
  "r8_[A-Za-z0-9]{30,}",
  "tvly-[A-Za-z0-9-]{20,}",
  "fw_[A-Za-z0-9]{20,}",
  "nvapi-[A-Za-z0-9_-]{40,}",
  "re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}",
  "fo1_[A-Za-z0-9_-]{30,}|fm[12]_[A-Za-z0-9+/=_-]{30,}",
  "vc[pkiar]_[A-Za-z0-9]{20,}",
  "cfp?at?_[A-Za-z0-9_-]{30,}|v1\\.0-[a-f0-9]{20,}-[a-f0-9]{60,}",
  "CCIPAT_[A-Za-z0-9_]{20,}",
  "sntry[su]_[A-Za-z0-9+/=_]{30,}",
  "phc_[A-Za-z0-9]{30,}|phx_[A-Za-z0-9]{30,}",
  "ops_eyJ[A-Za-z0-9_-]{40,}|A3-[A-Z0-9]{6}-[A-Z0-9-]{20,}",
  "AGE-SECRET-KEY-1[A-Z0-9]{40,}",
  "eyJ[A-Za-z0-9_-]{8,}\\.eyJ[A-Za-z0-9_-]{4,}(?:\\.[A-Za-z0-9_-]*)?",
  "eyJ[A-Za-z0-9_-]{16,}(?:\\.[A-Za-z0-9_-]*){4}",
  "hooks\\.slack\\.com/services/[A-Za-z0-9/]{20,}",
  "discord(?:app)?\\.com/api/webhooks/\\d+/[A-Za-z0-9_-]{20,}",
];
/** Searched inside a {@link TOKEN_RUN}; global. */
export const TOKEN = new RegExp(`(?<![A-Za-z0-9])(?:${TOKENS.join("|")})`, "g");

/** Tokens with characters outside a run: Telegram bots, Sentry and database addresses carry theirs elsewhere. */
export const TELEGRAM = /(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{30,}/g;
/** `scheme://user:password@host`, and `scheme://token@host` with a long token. */
export const URL_PASSWORD = /([a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@"'<>]{0,100}:)([^\s/@"'<>]{1,200})(?=@)/gi;
/** `curl -u user:password`, `user:password@host` without a scheme. */
export const USER_PASSWORD = /((?:\s-u |--user[ =])["']?[\w.@+-]{1,60}:)([^\s"'@]{3,100})/g;
export const URL_TOKEN = /(https?:\/\/)([A-Za-z0-9_-]{20,200})(?=@)/gi;
export const AUTHORIZATION = /\b((?:bearer|basic|token|apikey|digest) +)([A-Za-z0-9_\-.+/=~]{12,})/gi;
/** Secrets that arrive as parameters of an address. */
export const QUERY =
  /([?&;](?:access_token|api_?key|apikey|key|token|auth|secret|sig|signature|password|passwd|pwd|client_secret|code|sv|x-amz-signature|x-goog-signature)=)([^&\s"'<>#]{6,})/gi;
/** Digits that may be a payment card. */
export const CARD = /(?<![A-Za-z\d.,-])(?:[2-6]\d{3})(?:[ -]?\d){9,15}(?![A-Za-z\d]|[.,]\d)/g;
/** 40 characters of base64 beside an AWS key id. */
export const AWS_SECRET =
  /(?<![A-Za-z0-9/+=_-])(?=[A-Za-z0-9/+]{0,39}[A-Z])(?=[A-Za-z0-9/+]{0,39}[a-z])(?=[A-Za-z0-9/+]{0,39}\d)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])/g;

/** Names of fields and words of prose behind which a secret stands. Weak ones need a value that looks like one. */
const STRONG =
  "pass(?:word|wd|phrase|code)s?|pass(?=\\s?[:=])|pwd|kennw[oö]rt(?:er)?|passw[oö]rt(?:er)?|mot de passe|mots? de passe|mdp|contrase[nñ]as?|clave secreta|senhas?|palavra-passe|parola(?: d'ordine)?|wachtwoord(?:en)?|salasana(?:ni|t)?|tunnusluku(?:ni)?|密码|密碼|口令|パスワード|暗証番号|パスフレーズ";
const KEYS =
  "(?:api|secret|access|private|encryption|signing|license|licence|master|auth|account|shared|service|subscription|storage|webhook|session|deploy|ssh|admin)[ _-]?(?:access[ _-]?)?(?:key|token|secret)(?:[ _-]?(?:id|base64|hex))?|client[ _-]?secret|(?:access|refresh|id|bearer|auth|bot|user|personal access|session|csrf|oauth)[ _-]?token|token|secret|credentials?|key|schl[uü]ssel|cl[eé](?: (?:api|secr[eè]te))?|jeton|llave|clave|ficha|chave|chiave|gettone|sleutel|avain|tunniste|密钥|令牌|キー|トークン|connection ?string|accountkey|sharedaccesskey|aws_secret_access_key";
const NUMBERS =
  "pin(?:[- ]?(?:code|number|nummer|koodi))?|cvv2?|cvc2?|security code|card verification code|pr[uü]fziffer|otp|2fa code|one-time (?:code|password)|verification code|recovery code|backup code|seed phrase|recovery phrase|mnemonic|pin码|验证码";
/** Groups: 1 strong, 2 key, 3 number. Global. */
export const KEYWORD = new RegExp(
  `(?<![A-Za-z\\u00c0-\\u024f])(?:[A-Za-z0-9]{0,30}[_-])?(?:(${STRONG})|(${KEYS})|(${NUMBERS}))(?![a-z\\u00c0-\\u024f])`,
  "gi",
);

/** Between the keyword and its value in code, configuration and short notes. */
export const ASSIGN = /["'`]?\]?\s{0,3}(?:=>|:=|==?|:|：)\s{0,3}/y;
/** The same in prose: "for the wifi is", "lautet", "est", "は". */
export const PROSE =
  /(?:["'`])?\s{0,3}(?:(?:for|to|of|on|at|in|für|zum|zur|vom|von|im|pour|du|de|des|para|do|da|del|della|per|van|voor|het|the|my|our|der|die|das|dem|den|le|la|el|il|o|os|les|her|mein|mijn|mon|mi|meu|mio)\s{1,3}(?:(?:the|my|our|der|die|das|dem|den|le|la|el|il|o|a|het|de)\s{1,3})?[^\s.!?\n:=]{1,30}\s{1,3}){0,4}(?:is now|is still|is|was|are|be|equals|lautet|ist|war|heißt|est|c'est|était|es|era|é|è|on|oli|was|were|set to|changed to|を|は|が|是|为|:|：|=)(?:\s{0,3}[:：])?\s{0,3}/iy;
/** A quoted value. */
export const QUOTED = /(["'`“„«「])([^"'`“”„«»「」\n]{1,200})(["'`”“»」])/y;
/** A bare one. */
export const BARE = /[^\s"'`,;<>()[\]{}|，。、；「」\u3000]{1,200}/y;

/** Words that follow "the password is" and are none. */
export const NO_SECRET =
  /^(?:wrong|incorrect|correct|right|required|invalid|valid|expired|missing|too|not|no|the|a|an|stored|saved|hashed|encrypted|empty|weak|strong|long|short|same|reset|case|set|being|in|on|at|for|from|with|without|always|never|only|also|still|now|needed|optional|visible|hidden|public|private|secure|secret|safe|unsafe|leaked|compromised|shared|unknown|known|used|written|printed|sent|shown|checked|generated|rotated|revoked|changed|very|so|really|just|under|behind|somewhere|here|there|this|that|it|my|your|our|their|his|her|what|which|how|why|when|where|who|if|because|and|or|but|to|of|by|as|string|number|boolean|null|undefined|none|true|false|any|unknown|object|function|falsch|richtig|erforderlich|abgelaufen|leer|zu|nicht|kein|keine|der|die|das|ein|eine|im|in|auf|bei|sehr|gespeichert|geändert|sicher|faux|incorrecte?|obligatoire|vide|trop|pas|le|la|un|une|dans|sur|très|incorrecta|correcta|obligatoria|vacía|muy|demasiado|el|en|una|errada|errado|incorreta|obrigatória|vazia|muito|não|o|os|uma|em|sbagliata|corretta|troppo|non|il|nel|fout|verkeerd|juist|verlopen|leeg|te|niet|het|een|op|väärä|oikea|vanhentunut|tyhjä|liian|ei|ollut|错|错误|不|对|什么|何|違|間違|正)(?![\p{L}\p{N}])/iu;
/** Stands for a value instead of being one. */
export const PLACEHOLDER =
  /^(?:\[redacted|\*+$|•+$|x{3,}$|\.{2,}|…|<|\$|\{|%[A-Z_]+%|your[_-]|my[_-]?(?:key|token|secret)|example$|placeholder|process\.|os\.|env\.|import\.|config\.|this\.|self\.|settings\.|req\.|z\.|get\w*\(|str$|int$)/i;
